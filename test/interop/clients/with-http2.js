// node:http2 over a CONNECT tunnel: URL [FILE to POST]. Prints status and body as JSON.
import { request } from 'node:http';
import { connect } from 'node:http2';
import { readFile } from 'node:fs/promises';
import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';

const [address, file] = process.argv.slice(2);
const url = new URL(address);
const proxy = new URL(process.env.HTTPS_PROXY);
const asked = request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: url.host });
asked.end();
const [, socket] = await once(asked, 'connect');
const tls = connectTls({ socket, servername: url.hostname, ALPNProtocols: ['h2'] });
const session = connect(url, { createConnection: () => tls });
const path = url.pathname + url.search;
const method = file ? 'POST' : 'GET';
const stream = session.request({ ':method': method, ':path': path, authorization: 'from-the-client' });
stream.end(file ? await readFile(file) : undefined);
const [headers] = await once(stream, 'response');
let text = '';
for await (const piece of stream.setEncoding('utf8')) text += piece;
console.log(JSON.stringify({ status: headers[':status'], text }));
session.close();
