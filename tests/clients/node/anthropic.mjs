// Anthropic's Node SDK; see steps.mjs.
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { z } from 'zod';
import { each, model, run, thrown, url } from './steps.mjs';

const client = new Anthropic({ baseURL: url, apiKey: 'made-up', maxRetries: 0 });
const messages = [{ role: 'user', content: 'Say hello.' }];
const ask = { model, messages, max_tokens: 8, temperature: 0, system: 'Be brief.' };
const weather = {
  name: 'weather',
  description: 'The weather of a city.',
  input_schema: { type: 'object', properties: { city: { enum: ['Oslo', 'Rome'] } }, required: ['city'] },
};
const ways = {
  none: {},
  null: { speed: null },
  standard: { speed: 'standard' },
  fast: { speed: 'fast' },
  alias: { model: `${model}-fast` },
};
const two = { standard: { speed: 'standard' }, fast: { speed: 'fast' } };

async function streamed(fields) {
  const stream = client.messages.stream({ ...ask, ...fields });
  const events = [];
  let text = '';
  stream.on('streamEvent', (event) => events.push(structuredClone(event)));
  stream.on('text', (delta) => (text += delta));
  return { final: await stream.finalMessage(), events, text };
}

await run({
  models: async () => {
    const listed = [];
    for await (const card of client.models.list()) listed.push(card);
    return { listed, one: await client.models.retrieve(`${model}-fast`) };
  },
  messages: () => each(ways, (fields) => client.messages.create({ ...ask, ...fields })),
  messagesStream: () => each(ways, streamed),
  beta: () => client.beta.messages.create({ ...ask, speed: 'fast', betas: ['fast-mode-2026-02-01'] }),
  count: () => client.messages.countTokens({ model, messages, system: ask.system }),
  tools: () =>
    each(two, async (fields) => {
      const asked = { ...ask, ...fields, max_tokens: 60, tools: [weather], tool_choice: { type: 'any', disable_parallel_tool_use: true } };
      const stream = client.messages.stream(asked);
      const pieces = [];
      stream.on('inputJson', (piece) => pieces.push(piece));
      const final = await stream.finalMessage();
      return { whole: await client.messages.create(asked), streamed: final, pieces: pieces.join('') };
    }),
  toolRunner: async () => {
    const called = [];
    const { name, description, input_schema: inputSchema } = weather;
    const tool = betaTool({ name, description, inputSchema, run: (given) => (called.push(given), 'It rains.') });
    const runner = client.beta.messages.toolRunner({
      ...ask,
      max_tokens: 60,
      tools: [tool],
      tool_choice: { type: 'tool', name: 'weather' },
      max_iterations: 2,
    });
    const last = await runner.runUntilDone();
    return { called, last };
  },
  parse: async () => {
    const Person = z.object({ name: z.enum(['Ada', 'Alan']), grown: z.boolean() });
    const answer = await client.messages.parse({
      ...ask,
      max_tokens: 60,
      output_config: { format: zodOutputFormat(Person) },
    });
    return answer.parsed_output;
  },
  errors: async () => ({
    bad: await thrown(() => client.messages.create({ ...ask, max_tokens: 0 })),
    long: await thrown(() => client.messages.create({ ...ask, messages: [{ role: 'user', content: 'word '.repeat(10_000) }] })),
    model: await thrown(() => client.messages.create({ ...ask, model: 'other' })),
    path: await thrown(() => client.models.retrieve('other')),
  }),
  noFastSeat: async () => ({
    refused: await thrown(() => client.messages.create({ ...ask, speed: 'fast' })),
    again: await client.messages.create(ask),
  }),
  full: () => thrown(() => client.messages.create(ask)),
  failing: () => thrown(() => client.messages.stream(ask).finalMessage()),
});
