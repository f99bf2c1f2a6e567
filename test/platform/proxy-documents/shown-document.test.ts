// What callers see of a document can be sent back, and has no opaque value.
import { expect, it } from 'vitest';
import { parseDocument } from '../../../src/platform/proxy-documents/parsed-document.ts';
import { toShownDocument } from '../../../src/platform/proxy-documents/shown-document.ts';
import { toWholeDocument } from '../../../src/platform/proxy-documents/sealed-document.ts';
import { callbackTo, HUSH, opaqueRule, open, parse, ruleFor, secretRule } from './documents.ts';

const input = {
  rules: [
    opaqueRule('a.example.com'),
    secretRule('b.example.com', 'Bearer {TOKEN}'),
    ruleFor('c.example.com'),
  ],
  callbacks: [callbackTo('https://keys.example.com/')],
  no_proxy: ['d.example.com'],
  access_control: { deny_list: ['e.example.com'] },
};

it('has is_set in the place of each opaque value, and everything else as it was written', () => {
  const shown = toShownDocument(parse(input));
  expect(shown).toEqual({
    ...input,
    rules: [opaqueRule('a.example.com', { is_set: true }), ...input.rules.slice(1)],
    callbacks: [
      {
        ...callbackTo('https://keys.example.com/'),
        request_headers: [{ name: 'X-Key', type: 'opaque', is_set: true }],
      },
    ],
  });
  expect(JSON.stringify(shown)).not.toContain(HUSH);
});

it('changes nothing when it is sent back', () => {
  const stored = parse(input);
  const again = parseDocument(toShownDocument(stored), open, stored);
  expect(toWholeDocument(again)).toEqual(toWholeDocument(stored));
});

it('is empty for an empty document', () => expect(toShownDocument(parse({}))).toEqual({}));
