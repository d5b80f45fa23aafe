import { generateText, streamText, tool, stepCountIs } from "ai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { z } from "zod";
const [kind, delivery, host] = process.argv.slice(2);
const models = {
  anthropic: () => createAnthropic({ baseURL: process.env.ANTHROPIC_BASE_URL + "/v1", apiKey: "k" })("claude-opus-4-6"),
  openai: () => createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: "k" }).responses("gpt-5.2"),
  google: () => createGoogleGenerativeAI({ baseURL: process.env.GOOGLE_GEMINI_BASE_URL + "/v1beta", apiKey: "k" })("gemini-3-pro-preview"),
};
const options = {
  anthropic: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } },
  openai: { openai: { store: false, include: ["reasoning.encrypted_content"], reasoningEffort: "low" } },
  google: { google: { thinkingConfig: { includeThoughts: true } } },
};
const look = tool({ description: "x", inputSchema: z.object({ q: z.string().optional() }), execute: async () => "a result" });
const messages = [{ role: "user", content: "hello" }];
for (let n = 0; n < 5; n++) {
  const ask = { model: models[kind](), messages, tools: { look }, providerOptions: options[kind], maxRetries: 0 };
  const made = delivery === "stream" ? streamText({ ...ask, onError: (e) => { throw e.error; } }) : await generateText(ask);
  const response = await made.response, calls = await made.toolCalls;
  let added = response.messages;
  if (host === "lossy") added = added.map((m) => m.role === "assistant" && Array.isArray(m.content) ? { ...m, content: m.content.filter((p) => p.type !== "reasoning").map(({ providerOptions, ...p }) => p) } : m);
  messages.push(...added);
  if (!calls.length) break;
}
