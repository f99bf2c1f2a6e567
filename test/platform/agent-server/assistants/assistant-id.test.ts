// Ids of assistants: those of default assistants are the ones that public clients expect.
import { expect, it } from 'vitest';
import {
  defaultAssistantId,
  isDefaultAssistant,
  toAssistantId,
} from '../../../../src/platform/agent-server/assistants/assistant-id.ts';

const AGENT = 'fe096781-5601-53d2-b2f6-0d3403f7e9ca';
const graphs = new Map([['agent', { description: null }]]);

it('derives the id of a default assistant from the name of its graph', () => {
  expect(defaultAssistantId('agent')).toBe(AGENT);
  expect(defaultAssistantId('ümlaut')).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  expect(isDefaultAssistant('agent', AGENT)).toBe(true);
  expect(isDefaultAssistant('other', AGENT)).toBe(false);
});

it.each([
  ['a graph', 'agent', AGENT],
  ['an id', AGENT, AGENT],
  ['an id in capitals', AGENT.toUpperCase(), AGENT],
  ['no graph', 'other', undefined],
  ['a member that objects have', 'constructor', undefined],
  ['no text', '', undefined],
])('of %s', (_, text, id) => {
  expect(toAssistantId(graphs, text)).toBe(id);
});
