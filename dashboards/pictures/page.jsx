// One dashboard, drawn from its JSON with Grafana's own libraries against a live Prometheus.
//
// Grafana's: frames, units, thresholds, colours, mappings, transformations (@grafana/data), and what is
// seen (@grafana/ui). Ours: putting queries to Prometheus, which the datasource plugin does in Grafana,
// and the glue that the panel plugins are; neither is published on its own.

import React from "react";
import { createRoot } from "react-dom/client";
import {
  createTheme,
  dateTime,
  FieldType,
  getDisplayProcessor,
  standardTransformers,
  standardTransformersRegistry,
  ThemeContext,
  toDataFrame,
  transformDataFrame,
} from "@grafana/data";
import {
  BarGauge,
  BigValue,
  BigValueColorMode,
  BigValueGraphMode,
  GlobalStyles,
  PanelChrome,
  TimeSeries,
} from "@grafana/ui";
import { TableNG } from "@grafana/ui/unstable";

const { dashboard, from, to, scrape } = window.asked;
const theme = createTheme({ colors: { mode: "light" } });
const WIDTH = 1500;
const CELL = WIDTH / 24;
const LINE = 34;
const GAP = 8;
const CHROME = 42;

standardTransformersRegistry.setInit(() =>
  [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer].map(
    (one) => ({ id: one.id, name: one.name, transformation: () => Promise.resolve(one) }),
  ),
);

// ------------------------------------------------------------------------------------- queries

const range = to - from;

function filled(text, interval) {
  const rate = Math.max(interval + scrape, 4 * scrape);
  const known = {
    service: ".*",
    provider: ".*",
    model: ".*",
    host: ".*",
    __interval: `${interval}s`,
    __rate_interval: `${rate}s`,
    __range: `${range}s`,
  };
  return text.replace(/\$\{?(\w+)\}?/g, (_, name) => known[name]);
}

async function asked(path, query) {
  const reply = await fetch(`/api/v1/${path}?${new URLSearchParams(query)}`);
  const answer = await reply.json();
  if (answer.status !== "success") throw new Error(`${query.query}: ${answer.error}`);
  return answer.data.result;
}

function legendOf(target, metric) {
  if (target.legendFormat && target.legendFormat !== "__auto") {
    return target.legendFormat.replace(/\{\{(\w+)\}\}/g, (_, name) => metric[name] ?? "");
  }
  return Object.values(metric).join(" ") || "value";
}

async function overTime(target, width) {
  const interval = Math.max(scrape, Math.ceil(range / (width / 6)));
  const own = Number.parseInt(filled(target.interval ?? "0", interval), 10);
  const step = Math.max(interval, own);
  const query = { query: filled(target.expr, interval), start: from, end: to, step };
  const found = await asked("query_range", query);
  return found.map(({ metric, values }) => {
    const known = new Map(values.map(([at, value]) => [Math.round(at), Number(value)]));
    const times = [];
    for (let at = from; at <= to; at += step) times.push(at);
    return toDataFrame({
      refId: target.refId,
      fields: [
        { name: "Time", type: FieldType.time, values: times.map((at) => at * 1000) },
        {
          name: legendOf(target, metric),
          type: FieldType.number,
          values: times.map((at) => known.get(Math.round(at)) ?? null),
        },
      ],
    });
  });
}

async function atTheEnd(target, several) {
  const interval = Math.max(scrape, Math.ceil(range / 60));
  const found = await asked("query", { query: filled(target.expr, interval), time: to });
  if (target.format !== "table") {
    return found.map(({ metric, value }) =>
      toDataFrame({
        refId: target.refId,
        fields: [
          { name: legendOf(target, metric), type: FieldType.number, values: [Number(value[1])] },
        ],
      }),
    );
  }
  const labels = [...new Set(found.flatMap(({ metric }) => Object.keys(metric)))];
  const value = several ? `Value #${target.refId}` : "Value";
  return [
    toDataFrame({
      refId: target.refId,
      fields: [
        { name: "Time", type: FieldType.time, values: found.map(() => to * 1000) },
        ...labels.map((label) => ({
          name: label,
          type: FieldType.string,
          values: found.map(({ metric }) => metric[label] ?? ""),
        })),
        { name: value, type: FieldType.number, values: found.map((one) => Number(one.value[1])) },
      ],
    }),
  ];
}

// -------------------------------------------------------------------------------------- fields

function matches(matcher, name) {
  if (matcher.id === "byName") return matcher.options === name;
  const [, pattern, flags] = /^\/(.*)\/(\w*)$/.exec(matcher.options);
  return new RegExp(pattern, flags).test(name);
}

function configured(frames, panel) {
  const { defaults, overrides } = panel.fieldConfig;
  let series = 0;
  for (const frame of frames) {
    for (const field of frame.fields) {
      // a transformation renames by the name that is displayed
      const name = field.config?.displayName ?? field.name;
      const config = structuredClone({ ...defaults, displayName: name, links: [] });
      config.custom = { ...CUSTOM, ...defaults.custom };
      for (const { matcher, properties } of overrides) {
        if (!matches(matcher, name)) continue;
        for (const { id, value } of properties) {
          if (id === "links") continue;
          if (id.startsWith("custom.")) config.custom[id.slice(7)] = value;
          else config[id] = value;
        }
      }
      field.config = config;
      if (field.type === FieldType.string) field.config.unit = undefined;
      field.state = {
        displayName: name,
        range: rangeOf(frames, config),
        seriesIndex: field.type === FieldType.number ? series++ : 0,
      };
      field.display = getDisplayProcessor({ field, theme, timeZone: "utc" });
    }
  }
  return frames;
}

function rangeOf(frames, config) {
  const numbers = frames
    .flatMap((frame) => frame.fields)
    .filter((field) => field.type === FieldType.number)
    .flatMap((field) => field.values)
    .filter((value) => Number.isFinite(value));
  const min = config.min ?? Math.min(...numbers);
  const max = config.max ?? Math.max(...numbers);
  return { min, max, delta: max - min };
}

const CUSTOM = {
  axisLabel: "",
  axisPlacement: "auto",
  barAlignment: 0,
  hideFrom: { legend: false, tooltip: false, viz: false },
  lineInterpolation: "linear",
  pointSize: 4,
  scaleDistribution: { type: "linear" },
  spanNulls: false,
  stacking: { group: "A", mode: "none" },
};

function transformed(frames, transformations) {
  return new Promise((done) => {
    transformDataFrame(transformations ?? [], frames).subscribe(done);
  });
}

// -------------------------------------------------------------------------------------- panels

const timeRange = {
  from: dateTime(from * 1000),
  to: dateTime(to * 1000),
  raw: { from: dateTime(from * 1000), to: dateTime(to * 1000) },
};

function NoData({ panel }) {
  return (
    <div style={{ color: theme.colors.text.secondary, padding: 16, textAlign: "center" }}>
      {panel.fieldConfig.defaults.noValue}
    </div>
  );
}

function Stat({ panel, frames, width, height }) {
  const { display, values } = frames[0].fields.find((field) => field.type === FieldType.number);
  const last = [...values].reverse().find((value) => value !== null);
  const drawn = panel.options.graphMode === "area" && frames[0].fields.length > 1;
  const [time, line] = frames[0].fields;
  return (
    <BigValue
      theme={theme}
      width={width}
      height={height}
      value={display(last)}
      colorMode={BigValueColorMode.Value}
      graphMode={drawn ? BigValueGraphMode.Area : BigValueGraphMode.None}
      sparkline={drawn ? { x: time, y: line, timeRange } : undefined}
    />
  );
}

function Bars({ frames, width, height }) {
  const fields = frames.map((frame) => frame.fields[0]);
  fields.sort((a, b) => b.values[0] - a.values[0]);
  const most = Math.max(...fields.map((field) => field.values[0]));
  const each = Math.max(22, Math.min(34, height / fields.length));
  return (
    <div style={{ height, overflow: "hidden" }}>
      {fields.map((field) => (
        <div key={field.name} style={{ marginBottom: 3 }}>
          <BarGauge
            theme={theme}
            width={width}
            height={each}
            field={{ ...field.config, min: 0, max: most }}
            display={field.display}
            value={{ ...field.display(field.values[0]), title: field.name }}
            orientation="horizontal"
            displayMode="basic"
            alignmentFactors={{
              title: fields.map((x) => x.name).sort((a, b) => b.length - a.length)[0],
              text: "10,000",
            }}
          />
        </div>
      ))}
    </div>
  );
}

function Inner({ panel, frames, width, height }) {
  if (!frames.some((frame) => frame.length)) return <NoData panel={panel} />;
  switch (panel.type) {
    case "stat":
      return <Stat panel={panel} frames={frames} width={width} height={height} />;
    case "bargauge":
      return <Bars frames={frames} width={width} height={height} />;
    case "table":
      return (
        <TableNG
          data={frames[0]}
          width={width}
          height={height}
          structureRev={1}
          sortBy={panel.options.sortBy ?? []}
          fieldConfig={panel.fieldConfig}
          timeRange={timeRange}
          getActions={() => []}
          enableVirtualization={false}
        />
      );
    default:
      return (
        <TimeSeries
          frames={frames}
          width={width}
          height={height}
          timeRange={timeRange}
          timeZone="utc"
          legend={panel.options.legend}
        />
      );
  }
}

function Panel({ panel, frames }) {
  const { x, y, w, h } = panel.gridPos;
  const width = w * CELL - GAP;
  const height = h * LINE - GAP;
  const place = { position: "absolute", left: x * CELL, top: y * LINE, width, height };
  if (panel.type === "row") {
    return (
      <div style={{ ...place, fontWeight: 500, paddingTop: 6 }}>
        {panel.collapsed ? "› " : "⌄ "}
        {panel.title}
        {panel.collapsed ? ` (${panel.panels.length} panels)` : ""}
      </div>
    );
  }
  return (
    <div style={place}>
      <PanelChrome title={panel.title} width={width} height={height} padding="sm">
        {(innerWidth, innerHeight) => (
          <Inner panel={panel} frames={frames} width={innerWidth} height={innerHeight} />
        )}
      </PanelChrome>
    </div>
  );
}

function Dashboard({ drawn }) {
  const bottom = Math.max(...drawn.map(({ panel: { gridPos } }) => gridPos.y + gridPos.h));
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <div
        id="dashboard"
        style={{
          background: theme.colors.background.canvas,
          color: theme.colors.text.primary,
          fontFamily: theme.typography.fontFamily,
          width: WIDTH + 2 * GAP,
          padding: GAP,
          boxSizing: "border-box",
        }}
      >
        <h3 style={{ fontSize: 20, margin: "4px 0 12px" }}>{dashboard.title}</h3>
        <div style={{ position: "relative", height: bottom * LINE }}>
          {drawn.map(({ panel, frames }) => (
            <Panel key={panel.title} panel={panel} frames={frames} />
          ))}
        </div>
      </div>
    </ThemeContext.Provider>
  );
}

async function loaded(panel) {
  if (panel.type === "row") return { panel, frames: [] };
  const width = panel.gridPos.w * CELL;
  const several = panel.targets.length > 1;
  const found = await Promise.all(
    panel.targets.map((target) =>
      target.range ? overTime(target, width) : atTheEnd(target, several),
    ),
  );
  const frames = await transformed(found.flat(), panel.transformations);
  return { panel, frames: configured(frames, panel) };
}

const drawn = await Promise.all(dashboard.panels.map(loaded));
createRoot(document.getElementById("root")).render(<Dashboard drawn={drawn} />);
const charts = drawn.filter(
  ({ panel, frames }) => panel.type === "timeseries" && frames.some((frame) => frame.length),
);
document.body.dataset.ready = charts.length;
