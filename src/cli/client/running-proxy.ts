// A running proxy as `sallyport env --proxy URL` uses it: its address, and the CA certificate that its port serves. No file
// of the proxy's user is read.
import { get } from 'node:http';
import { InputError } from '../../base/input-error.ts';
import { type ListenAddress, formatAddress } from '../../base/listen-address.ts';
import { codeOf } from '../../tls/pem-files.ts';
import { parseCertificates } from '../../tls/pem.ts';

/** The value of --proxy. A token in it would be visible to other users among the arguments of the process. */
export function parseProxyUrl(text: string): ListenAddress {
  if (!URL.canParse(text) || !text.includes('://'))
    throw new InputError('--proxy must be a URL, for example http://127.0.0.1:3128');
  const { protocol, hostname, port, username, password, pathname, search } = new URL(text);
  if (protocol !== 'http:') throw new InputError('--proxy must begin with http://');
  if (username !== '' || password !== '')
    throw new InputError('--proxy must be without a token: give it as --token-file FILE');
  if (pathname !== '/' || search !== '') throw new InputError('--proxy must be a URL without a path');
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : Number(port) };
}

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 65_536;

/** The PEM text that the proxy serves as `/ca.pem`: one certificate, or two during a rotation. */
export async function fetchCertificate(address: ListenAddress): Promise<string> {
  const url = `http://${formatAddress(address)}/ca.pem`;
  const pem = await fetchText(url, address);
  const certificates = parseCertificates(pem);
  if (typeof certificates === 'number' || certificates.length === 0 || certificates.length > 2)
    throw new InputError(
      `${url}: the response has no CA certificate: is this the port of a Sallyport proxy?`,
    );
  return pem;
}

async function fetchText(url: string, { host, port }: ListenAddress): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const fail = (reason: string, cause?: unknown): void =>
    reject(new InputError(`${url} ${reason}`, { cause }));
  // The default agent may use the proxy of the environment.
  const request = get({ host, port, path: '/ca.pem', agent: false, signal: AbortSignal.timeout(TIMEOUT_MS) });
  request.on('error', (error) =>
    fail(`cannot be reached (${String(codeOf(error))}): start the proxy, or correct --proxy`, error),
  );
  request.once('response', (response) => {
    const chunks: Buffer[] = [];
    let length = 0;
    if (response.statusCode !== 200) {
      fail(`responded with status ${response.statusCode}: is this the port of a Sallyport proxy?`);
      request.destroy();
      return;
    }
    response.on('data', (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= MAX_BYTES) return;
      fail('sent a response that is too long');
      request.destroy();
    });
    response.on('error', (error) => fail(`cannot be read (${String(codeOf(error))})`, error));
    response.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
  });
  return promise;
}
