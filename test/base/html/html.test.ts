import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { html } from '../../../src/base/html/html.ts';

it('a template escapes texts, and keeps what other templates have made', () => {
  const inner = html`<b>${'<i>&"\''}</b>`;
  expect(String(html`<p title="${'"><x'}">${inner}${[inner, inner]}${undefined}${false}${0}</p>`)).toBe(
    '<p title="&#34;&#62;&#60;x"><b>&#60;i&#62;&#38;&#34;&#39;</b><b>&#60;i&#62;&#38;&#34;&#39;</b><b>&#60;i&#62;&#38;&#34;&#39;</b>0</p>',
  );
});

it('no text has a character that begins or ends anything in HTML', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'<>&"\'a;#0 ') }), (text) => {
      expect(String(html`${text}`).replaceAll(/&#\d+;/g, '')).not.toMatch(/[<>&"']/);
    }),
  );
});
