// A callback endpoint: returns the headers that Sallyport sets for a host.
import { timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

const { CALLBACK_KEY, PORT = '9000' } = process.env;
if (!CALLBACK_KEY) throw new Error('set CALLBACK_KEY');
const expected = Buffer.from(CALLBACK_KEY);

async function tokenFor(host) {
  return `short-lived-token-for-${host}`; // ask your identity provider here
}

function isAllowed(request) {
  const key = Buffer.from(request.headers['x-callback-key'] ?? '');
  return key.length === expected.length && timingSafeEqual(key, expected);
}

const server = createServer(async (request, response) => {
  if (!isAllowed(request)) return response.writeHead(403).end();
  try {
    const { host } = await json(request);
    const headers = { Authorization: `Bearer ${await tokenFor(host)}` };
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ headers }));
  } catch {
    response.writeHead(500).end();
  }
});
server.listen(Number(PORT), '127.0.0.1', () =>
  console.log(`listening on http://127.0.0.1:${server.address().port}/`),
);
