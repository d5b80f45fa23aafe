// node render.mjs PROMETHEUS FROM TO SCRAPE DASHBOARD.json PICTURE.png [...more pairs]
//
// Bundles the page, serves it on loopback beside the API of Prometheus, and has Chromium draw it.

import { build } from "esbuild";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";

const [prometheus, from, to, scrape, ...pairs] = process.argv.slice(2);
const HERE = new URL(".", import.meta.url).pathname;
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";

const built = await build({
  absWorkingDir: HERE,
  entryPoints: [`${HERE}page.jsx`],
  bundle: true,
  write: false,
  format: "esm",
  minify: true,
  logLevel: "error",
  define: { "process.env.NODE_ENV": '"production"', global: "window" },
  outdir: HERE, // of nothing that is written; style sheets need a name beside the script
  loader: { ".png": "dataurl", ".svg": "dataurl", ".ttf": "empty", ".woff2": "dataurl" },
  jsx: "automatic",
  // the compatibility layer of an older router, which the newer one has no need of
  alias: { "react-router-dom-v5-compat": "react-router-dom" },
});
const file = (end) => built.outputFiles.find(({ path }) => path.endsWith(end)).text;
const [script, styles] = [file(".js"), file(".css")];

let asked = {};
const server = createServer(async (request, reply) => {
  if (request.url.startsWith("/api/")) {
    const answer = await fetch(prometheus + request.url);
    reply.writeHead(answer.status, { "content-type": "application/json" });
    reply.end(await answer.text());
  } else if (request.url === "/page.js") {
    reply.writeHead(200, { "content-type": "text/javascript" });
    reply.end(script);
  } else if (request.url === "/page.css") {
    reply.writeHead(200, { "content-type": "text/css" });
    reply.end(styles);
  } else if (request.url.endsWith(".woff2")) {
    // Grafana's font is not among what is published; Debian has it as fonts-inter
    const [face] = /Inter-\w+/.exec(request.url) ?? ["none"];
    const font = await readFile(`/usr/share/fonts/opentype/inter/${face}.otf`).catch(() => null);
    reply.writeHead(font ? 200 : 404).end(font);
  } else if (request.url !== "/") {
    reply.writeHead(404).end();
  } else {
    reply.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    reply.end(
      `<!doctype html><link rel="stylesheet" href="/page.css"><body style="margin:0"><div id="root"></div>` +
        `<script>window.grafanaBootData={settings:{},user:{},navTree:[]};` +
        `window.asked=${JSON.stringify(asked)}</script>` +
        `<script type="module" src="/page.js"></script>`,
    );
  }
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const url = `http://127.0.0.1:${server.address().port}/`;

const browser = await chromium.launch({
  executablePath: BROWSER,
  args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"],
});
try {
  while (pairs.length) {
    const [path, picture] = pairs.splice(0, 2);
    const dashboard = JSON.parse(await readFile(path, "utf-8"));
    asked = { dashboard, from: Number(from), to: Number(to), scrape: Number(scrape) };
    // higher than any dashboard: a table out of sight is not drawn
    const page = await browser.newPage({ viewport: { width: 1520, height: 2600 }, deviceScaleFactor: 0.75 });
    const broken = new Promise((_, reject) => {
      page.on("pageerror", (error) => reject(new Error(`${path}: ${error.message}`)));
    });
    await page.goto(url);
    await Promise.race([broken, page.waitForSelector("body[data-ready]", { timeout: 60_000 })]);
    // a chart is drawn once its legend was measured, which a busy machine takes its time for
    await page.waitForFunction(
      () => document.querySelectorAll(".uplot").length >= Number(document.body.dataset.ready),
      null,
      { timeout: 60_000 },
    );
    await page.waitForTimeout(3000);
    await page.locator("#dashboard").screenshot({ path: picture });
    await page.close();
    console.log(picture);
  }
} finally {
  await browser.close();
  server.close();
}