// Ways to break the services of boxes: tokens, cookies, pages of other origins. `npm run mutants -- services`.
import type { Mutation, Version } from './mutation.ts';

const versions: readonly Version[] = ['services'];
const folder = 'src/platform/sandboxes/services';

export const services: readonly Mutation[] = [
  {
    invariant: 'I6',
    versions,
    name: 'a token counts for every port of its box',
    file: `${folder}/service-tokens.ts`,
    text: 'return row?.box_id === boxId && row.port === port ? toKnownToken(row) : undefined;',
    replacement: 'return row?.box_id === boxId ? toKnownToken(row) : undefined;',
    breaks: 'whoever was given one service of a box uses all of them',
  },
  {
    invariant: 'I6',
    versions,
    name: 'a token counts for every box',
    file: `${folder}/service-tokens.ts`,
    text: 'return row?.box_id === boxId && row.port === port ? toKnownToken(row) : undefined;',
    replacement: 'return row?.port === port ? toKnownToken(row) : undefined;',
    breaks: 'a tenant uses the services of all others',
  },
  {
    invariant: 'I6',
    versions,
    name: 'a code counts more than once',
    file: `${folder}/service-tokens.ts`,
    text: '.set({ code_hash: null, cookie_hash: hashKey(cookie) })',
    replacement: '.set({ cookie_hash: hashKey(cookie) })',
    breaks: 'who finds the address in a history or a log is authenticated',
  },
  {
    invariant: 'I6',
    versions,
    name: 'the cookie counts for pages of other origins',
    file: `${folder}/service-request.ts`,
    text: "return isOwnPage(place, request) ? { kind: 'cookie', text } : refused('forbidden', FOREIGN_PAGE);",
    replacement: "return { kind: 'cookie', text };",
    breaks: 'any page writes in the name of its reader',
  },
  {
    invariant: 'I6',
    versions,
    name: 'a WebSocket with the cookie needs no Origin',
    file: `${folder}/service-request.ts`,
    text: 'if (request.isUpgrade) return origins.length > 0 && isOwn;',
    replacement: 'if (request.isUpgrade) return true;',
    breaks: 'the page of a box reads the WebSocket of another one',
  },
  {
    invariant: 'I5',
    versions,
    name: 'the box sees our cookie',
    file: 'src/gateway/site/site-cookies.ts',
    text: '.filter(({ name }) => !OURS.test(name) && name.startsWith(cookiePrefix))',
    replacement: '.filter(({ name }) => name.startsWith(cookiePrefix))',
    breaks: 'code in a box is authenticated as the user who has opened it',
  },
  {
    invariant: 'I5',
    versions,
    name: 'the box sets our cookie',
    file: 'src/gateway/site/site-cookies.ts',
    text: "if (value === undefined || name === '' || OURS.test(name)) return undefined;",
    replacement: "if (value === undefined || name === '') return undefined;",
    breaks: 'a box chooses whose token a browser uses',
  },
  {
    invariant: 'I5',
    versions,
    name: 'the password of one service by path reaches the others',
    file: `${folder}/service-request.ts`,
    text: "const isOfOrigin = by === 'path' && kind === 'cookie';",
    replacement: 'const isOfOrigin = false;',
    breaks: 'a box that asks for the same realm gets the password of another one',
  },
  {
    invariant: 'I12',
    versions,
    name: 'pages by path have the origin that they share',
    file: 'src/gateway/site/client-fields.ts',
    text: "if (site.by === 'path') result.push('Content-Security-Policy', SANDBOX);",
    replacement: '',
    breaks: 'the page of a box reads the services of all others',
  },
];
