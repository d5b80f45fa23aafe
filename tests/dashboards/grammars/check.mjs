// Reads JSON lines {"kind", "text"} and writes for each a line with the places of its syntax errors.

import { parser as logql } from "@grafana/lezer-logql";
import { parser as traceql } from "@grafana/lezer-traceql";
import { parser as promql } from "@prometheus-io/lezer-promql";
import { createInterface } from "node:readline";

const parsers = { loki: logql, tempo: traceql, prometheus: promql };

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, text } = JSON.parse(line);
  const errors = [];
  parsers[kind].parse(text).iterate({
    enter: (node) => {
      if (node.type.isError) errors.push(node.from);
    },
  });
  console.log(JSON.stringify(errors));
}
