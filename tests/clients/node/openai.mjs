// OpenAI's Node SDK; see steps.mjs.
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { z } from 'zod';
import { each, model, run, thrown, url } from './steps.mjs';

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'made-up', maxRetries: 0 });
const messages = [{ role: 'user', content: 'Say hello.' }];
const chat = { model, messages, max_tokens: 8, temperature: 0 };
const ask = { model, input: 'Say hello.', max_output_tokens: 8, temperature: 0 };
const parameters = {
  type: 'object',
  properties: { city: { enum: ['Oslo', 'Rome'] } },
  required: ['city'],
  additionalProperties: false,
};
const weather = { name: 'weather', description: 'The weather of a city.', parameters };
const ways = {
  none: {},
  default: { service_tier: 'default' },
  priority: { service_tier: 'priority' },
  fast: { service_tier: 'fast' },
  alias: { model: `${model}-fast` },
};
const two = { standard: {}, fast: { service_tier: 'priority' } };

async function streamed(fields) {
  const stream = client.chat.completions.stream({ ...chat, ...fields, stream_options: { include_usage: true } });
  const chunks = [];
  let text = '';
  stream.on('chunk', (chunk) => chunks.push(chunk));
  stream.on('content', (delta) => (text += delta));
  return { final: await stream.finalChatCompletion(), chunks, text };
}

async function eventsOf(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

await run({
  models: async () => ({ listed: await eventsOf(client.models.list()), one: await client.models.retrieve(`${model}-fast`) }),
  chat: () => each(ways, (fields) => client.chat.completions.create({ ...chat, ...fields })),
  chatStream: () => each(ways, streamed),
  completions: () =>
    each(two, (fields) => client.completions.create({ model, prompt: 'Once upon', max_tokens: 8, temperature: 0, ...fields })),
  responses: () => each(ways, (fields) => client.responses.create({ ...ask, ...fields })),
  responsesStream: () => each(ways, async (fields) => eventsOf(await client.responses.create({ ...ask, ...fields, stream: true }))),
  goingOn: async () => {
    const first = await client.responses.create(ask);
    const second = await client.responses.create({ ...ask, input: 'Again.', previous_response_id: first.id });
    await client.responses.delete(first.id);
    return { first, second, gone: await thrown(() => client.responses.retrieve(first.id)) };
  },
  socket: async () => {
    const socket = new ResponsesWS(client);
    const events = [];
    socket.send({ type: 'response.create', ...ask, service_tier: 'priority', store: false });
    for await (const { type, message } of socket.stream()) {
      if (type === 'error') throw new Error(JSON.stringify(message));
      if (type === 'message') events.push(message);
      if (type === 'message' && message.type === 'response.incomplete') break;
    }
    socket.close();
    return events;
  },
  tools: () =>
    each(two, async (fields) => {
      const asked = {
        ...chat,
        ...fields,
        max_tokens: 60,
        tools: [{ type: 'function', function: weather }],
        tool_choice: 'required',
        parallel_tool_calls: false,
      };
      const whole = await client.chat.completions.create(asked);
      const stream = client.chat.completions.stream(asked);
      const response = await client.responses.create({
        ...ask,
        ...fields,
        max_output_tokens: 60,
        tools: [{ type: 'function', ...weather, strict: true }],
        tool_choice: 'required',
        parallel_tool_calls: false,
      });
      return { whole, streamed: await stream.finalChatCompletion(), response };
    }),
  runTools: async () => {
    const called = [];
    const runner = client.chat.completions.runTools({
      ...chat,
      max_tokens: 60,
      tool_choice: { type: 'function', function: { name: 'weather' } },
      tools: [
        {
          type: 'function',
          function: { ...weather, parse: JSON.parse, function: (given) => (called.push(given), 'It rains.') },
        },
      ],
    });
    await runner.done();
    return { called, messages: runner.messages };
  },
  parse: async () => {
    const Person = z.object({ name: z.enum(['Ada', 'Alan']), grown: z.boolean() });
    const answer = await client.chat.completions.parse({
      ...chat,
      max_tokens: 60,
      response_format: zodResponseFormat(Person, 'person'),
    });
    return answer.choices[0].message.parsed;
  },
  closed: async () => {
    const stream = await client.chat.completions.create({ ...chat, max_tokens: 4000, ignore_eos: true, stream: true });
    for await (const _ of stream) break;
    return true;
  },
  errors: async () => ({
    bad: await thrown(() => client.chat.completions.create({ ...chat, temperature: 5 })),
    long: await thrown(() => client.responses.create({ ...ask, input: 'word '.repeat(10_000) })),
    model: await thrown(() => client.chat.completions.create({ ...chat, model: 'other' })),
    path: await thrown(() => client.models.retrieve('other')),
  }),
  full: async () => ({
    chat: await thrown(() => client.chat.completions.create(chat)),
    response: await thrown(() => client.responses.create(ask)),
  }),
  downgraded: () => client.chat.completions.create({ ...chat, service_tier: 'priority' }),
  failing: async () =>
    thrown(async () => eventsOf(await client.chat.completions.create({ ...chat, stream: true }))),
});
