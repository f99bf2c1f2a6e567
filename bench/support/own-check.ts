// The first requests of `--target`, before anything is measured: one directly, one through the proxy. The record of the second
// must say that a credential was injected; otherwise something else would be measured than what the user asked for.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type Open, type Response, agentOf, exchange, portOf } from './own-connection.ts';

const RECORD_DEADLINE_MS = 5_000;

/** The host must be reachable without the proxy, with a certificate that the client trusts. Its status may be any. */
export async function checkDirect(url: URL, open: Open): Promise<void> {
  await firstExchange(url, open).catch((error: NodeJS.ErrnoException) => {
    throw directError(url, error);
  });
}

function directError(url: URL, { code = '', message }: NodeJS.ErrnoException): Error {
  const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/.test(code);
  if (isCertificate)
    return new Error(
      `--target ${url.origin}: the client does not trust its certificate (${code}); add its CA for the client with NODE_EXTRA_CA_CERTS=FILE, and for the proxy with SALLYPORT_UPSTREAM_CA=FILE`,
    );
  const text = message === '' ? code : message;
  return new Error(`--target ${url.origin}: no response from ${url.hostname} port ${portOf(url)}: ${text}`);
}

type Proxy = { readonly recordsFile: string; readonly rules: string };

export async function checkThrough(url: URL, open: Open, { recordsFile, rules }: Proxy): Promise<void> {
  const response = await firstExchange(url, open).catch((error: Error) => {
    throw refusalIn(url, error.message) ?? new Error(`${url.href} through the proxy: ${error.message}`);
  });
  const code = response.head['x-sallyport-error'];
  if (code !== undefined) throw refusalError(url, `${response.status} ${code}`, response.body);
  const { outcome, reason } = await firstRecord(recordsFile);
  if (outcome !== 'injected')
    throw new Error(
      `--target ${url.href}: the proxy injected nothing (outcome ${outcome}${reason === undefined ? '' : `, reason ${reason}`}); a rule or callback of ${rules} must match this host and path`,
    );
  if (response.status >= 400) throw statusError(url, response.status);
}

/** The status of a request into which a credential was injected. */
export function statusError({ href }: URL, status: number): Error {
  const isRefused = status === 401 || status === 403;
  const meaning = isRefused
    ? 'it does not accept the credential that was injected; check its value in the rules'
    : 'every response through the proxy must be a success; choose a path that responds to GET';
  return new Error(`--target ${href} responded with ${status}: ${meaning}`);
}

/** A refusal of CONNECT, whose error contains the response. */
function refusalIn(url: URL, message: string): Error | undefined {
  const [, status, rest = ''] = /^CONNECT gave HTTP\/1\.1 (\d+) ([^]*)$/.exec(message) ?? [];
  const [, code] = /^X-Sallyport-Error: (\S+)\r?$/im.exec(rest) ?? [];
  if (code === undefined) return undefined;
  return refusalError(url, `${status} ${code}`, rest.slice(rest.indexOf('\r\n\r\n') + 4));
}

function refusalError({ href }: URL, code: string, body: string): Error {
  const { message, hint } = parseRefusal(body);
  const text = [message, hint].filter((each) => each !== undefined).join('; ');
  return new Error(`the proxy refused --target ${href} with ${code}: ${text}`);
}

/** The body of CONNECT may arrive after its head. */
function parseRefusal(body: string): { readonly message?: string; readonly hint?: string } {
  try {
    return JSON.parse(body);
  } catch {
    return { message: 'docs/errors.md explains the code' };
  }
}

async function firstExchange(url: URL, open: Open): Promise<Response> {
  const socket = await open();
  try {
    return await exchange(url, agentOf(socket));
  } finally {
    socket.destroy();
  }
}

type ExchangeRecord = { readonly outcome: string; readonly reason?: string };

/** The proxy writes a record when an exchange or a tunnel has ended, and a few of them at once. */
async function firstRecord(file: string): Promise<ExchangeRecord> {
  const endMs = performance.now() + RECORD_DEADLINE_MS;
  while (performance.now() < endMs) {
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    const line = lines.find((each) => each.includes('"authority":') && each.includes('"outcome":'));
    if (line !== undefined) return JSON.parse(line);
    await delay(10);
  }
  throw new Error('the proxy wrote no record of the first request');
}
