// The fields of a response of the data plane. What is in a box writes parts of it, and a browser may be made to open its address: no
// field passes that is not known, and no response is a page of this host.

/** In lower case. All others are left out: `Set-Cookie`, `Location`, `Strict-Transport-Security`, and what comes later. */
const PASSED: ReadonlySet<string> = new Set([
  ...['content-length', 'content-type', 'content-range', 'accept-ranges', 'etag', 'last-modified', 'date'],
  ...['retry-after', 'allow', 'x-request-id'],
  // Of a 101.
  ...['sec-websocket-accept', 'sec-websocket-protocol', 'sec-websocket-extensions'],
]);

const ADDED: readonly string[] = [
  ...['X-Content-Type-Options', 'nosniff'],
  ...['Content-Security-Policy', "sandbox; default-src 'none'"],
  ...['Cross-Origin-Resource-Policy', 'same-origin'],
  // It was authorized for one caller, and the file may change.
  ...['Cache-Control', 'private, no-cache'],
];

/** Name, value, name, value, … */
export function dataPlaneFields(fields: readonly string[]): readonly string[] {
  const passed = fields.flatMap((name, at) =>
    at % 2 === 0 && PASSED.has(name.toLowerCase()) ? [name, fields[at + 1] ?? ''] : [],
  );
  return [...passed, ...ADDED];
}
