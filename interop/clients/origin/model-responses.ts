// The shapes of model APIs, as far as their public clients read them.
import { type OriginResponse, sendEvents, sendJson, type ServerEvent } from './origin-response.ts';

const PIECES = ['one ', 'two ', 'three ', 'four'];
const TEXT = PIECES.join('');

/** False if it is no path of such an API. */
export async function respondAsModel(path: string, body: Buffer, response: OriginResponse): Promise<boolean> {
  const found = Object.entries(apis).find(([pattern]) => new RegExp(pattern).test(path));
  if (found === undefined) return false;
  const asked = body.length === 0 ? {} : (JSON.parse(body.toString()) as Asked);
  const { whole, events } = found[1](asked.model ?? 'model');
  const isStream = asked.stream === true || path.includes(':stream');
  if (isStream && events !== undefined) await sendEvents(response, events);
  else sendJson(response, 200, whole);
  return true;
}

type Asked = { readonly model?: string; readonly stream?: boolean };
type Api = (model: string) => { readonly whole: unknown; readonly events?: readonly ServerEvent[] };

const apis: Readonly<Record<string, Api>> = {
  '/chat/completions$': chatCompletion,
  '/messages/count_tokens$': () => ({ whole: { input_tokens: 1 } }),
  '/messages$': message,
  '/responses$': modelResponse,
  ':(stream)?[gG]enerateContent$': generatedContent,
  '/models$': () => ({
    whole: {
      object: 'list',
      data: [{ id: 'model', object: 'model', created: 1, owned_by: 'tests' }],
      models: [{ name: 'models/model' }],
    },
  }),
};

function chatCompletion(model: string): ReturnType<Api> {
  const base = { id: 'chatcmpl-1', created: 1, model };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const chunk = (delta: object, finish: string | null = null): ServerEvent => ({
    data: {
      ...base,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason: finish }],
    },
  });
  const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: TEXT } };
  return {
    whole: { ...base, object: 'chat.completion', choices: [choice], usage },
    events: [
      ...PIECES.map((content) => chunk({ role: 'assistant', content })),
      chunk({}, 'stop'),
      { data: '[DONE]' },
    ],
  };
}

function message(model: string): ReturnType<Api> {
  const base = { id: 'msg_1', type: 'message', role: 'assistant', model, stop_sequence: null };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const event = (type: string, rest: object): ServerEvent => ({ event: type, data: { type, ...rest } });
  return {
    whole: { ...base, usage, stop_reason: 'end_turn', content: [{ type: 'text', text: TEXT }] },
    events: [
      event('message_start', { message: { ...base, usage, stop_reason: null, content: [] } }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      ...PIECES.map((text) =>
        event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
      ),
      event('content_block_stop', { index: 0 }),
      event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage }),
      event('message_stop', {}),
    ],
  };
}

function modelResponse(model: string): ReturnType<Api> {
  const content = [{ type: 'output_text', text: TEXT, annotations: [] }];
  const item = { type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content };
  const usage = {
    input_tokens: 1,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 1,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 2,
  };
  const whole = { id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model, usage };
  const event = (type: string, rest: object): ServerEvent => ({ event: type, data: { type, ...rest } });
  const begun = { ...item, status: 'in_progress', content: [] };
  return {
    whole: { ...whole, output: [item] },
    events: [
      event('response.created', { response: { ...whole, status: 'in_progress', output: [] } }),
      event('response.output_item.added', { output_index: 0, item: begun }),
      ...PIECES.map((delta) =>
        event('response.output_text.delta', { item_id: 'msg_1', output_index: 0, content_index: 0, delta }),
      ),
      event('response.output_item.done', { output_index: 0, item }),
      event('response.completed', { response: { ...whole, output: [item] } }),
    ],
  };
}

function generatedContent(): ReturnType<Api> {
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
  const candidate = (text: string, finishReason?: string): object => ({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason, index: 0 }],
    usageMetadata,
    modelVersion: 'model',
  });
  const last = PIECES.length - 1;
  return {
    whole: candidate(TEXT, 'STOP'),
    events: PIECES.map((text, index) => ({ data: candidate(text, index === last ? 'STOP' : undefined) })),
  };
}
