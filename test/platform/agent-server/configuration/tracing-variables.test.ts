// When a deployment traces to the platform, and when it does not.
import { expect, it } from 'vitest';
import { withTracing } from '../../../../src/platform/agent-server/configuration/tracing-variables.ts';

const URL = 'http://127.0.0.1:3126';
const endpoints = { LANGSMITH_ENDPOINT: URL, LANGCHAIN_ENDPOINT: URL };

it('traces unless it says otherwise', () => {
  expect(withTracing({ A: 'a' }, URL)).toEqual({ A: 'a', LANGSMITH_TRACING: 'true', ...endpoints });
});

it.each([
  { LANGSMITH_TRACING: 'false' },
  { LANGCHAIN_TRACING: 'false' },
  { LANGCHAIN_TRACING_V2: 'false' },
  { LANGSMITH_TRACING_V2: '' },
])('does not where it says %j', (own) => {
  expect(withTracing(own, URL)).toEqual({ ...own, ...endpoints });
});

it.each([{ LANGSMITH_ENDPOINT: 'https://traces.example.com' }, { LANGSMITH_API_KEY: 'key' }])(
  'is left as it is with an account of its own: %j',
  (own) => expect(withTracing(own, URL)).toEqual(own),
);

it('is left as it is where the platform takes no runs', () => {
  expect(withTracing({ A: 'a' }, undefined)).toEqual({ A: 'a' });
});
