// S-04: minted leaves, in any number and with long names, must not make any file grow.
import type { AttackRow } from '../row.ts';
import type { HelloShape } from './tls-script.ts';

export type DiskRow = AttackRow<{ readonly leaves: HelloShape }, { readonly seen: string }>;

const long = `${'a'.repeat(60)}.${'b'.repeat(60)}`;
const table: readonly (readonly [name: string, leaves: HelloShape, seen: string])[] = [
  ['one-leaf', { hello: {}, authority: 'api.test:443' }, 'certificate of api.test'],
  [
    'the-same-leaf-a-hundred-times',
    { hello: {}, authority: 'api.test:443', times: 100 },
    'certificate of api.test',
  ],
  [
    'three-hundred-leaves',
    { hello: {}, authority: 'd{n}.mint.test:443', times: 300 },
    'certificate of d{n}.mint.test',
  ],
  [
    'fifty-leaves-of-long-names',
    { hello: {}, authority: `d{n}.${long}.mint.test:443`, times: 50 },
    `certificate of d{n}.${long}.mint.test`,
  ],
  [
    'a-hundred-hellos-that-are-refused',
    { hello: { names: ['evil.test'] }, authority: 'd{n}.mint.test:443', times: 100 },
    'alert 112',
  ],
  [
    'names-like-paths',
    { hello: {}, authority: 'd{n}.etc-passwd.mint.test:443', times: 20 },
    'certificate of d{n}.etc-passwd.mint.test',
  ],
];

export const diskRows: readonly DiskRow[] = table.map(([name, leaves, seen]) => ({
  id: `S-04 ${name}`,
  script: { leaves },
  expect: { seen },
}));
