// Go, Rust and Java: programs that are built from source with each library.
import type { ClientRow } from '../client-row.ts';

const goModule = (path: string): string => `go version -m {go-clients}/clients | grep '${path}'`;
const crate = (folder: string, name: string): string =>
  `grep -A1 '^name = "${name}"' {${folder}}/*/Cargo.lock`;
const java = (name: string): string => `java -cp '{java-clients}/lib/*:{java-clients}' Clients ${name}`;
const jar = (name: string): string => `ls {java-clients}/lib | grep '^${name}-[0-9]'`;

const goRows: readonly ClientRow[] = [
  {
    ...{ name: 'go-http', client: 'Go net/http', version: 'go version', token: true },
    ...{ command: '{go-clients}/clients http', requests: 5, streams: true },
  },
  {
    ...{ name: 'go-http1', client: 'Go net/http, HTTP/1.1', version: 'go version' },
    ...{ command: '{go-clients}/clients http1', requests: 5, streams: true },
  },
  {
    ...{ name: 'go-grpc', client: 'Go grpc-go', version: goModule('google.golang.org/grpc'), token: true },
    ...{ command: '{go-clients}/clients grpc', requests: 3, streams: true },
  },
  {
    ...{ name: 'go-gorilla', client: 'Go gorilla/websocket', version: goModule('gorilla/websocket') },
    ...{ command: '{go-clients}/clients gorilla', requests: 1 },
  },
  {
    ...{ name: 'go-coder', client: 'Go coder/websocket', version: goModule('coder/websocket') },
    ...{ command: '{go-clients}/clients coder', requests: 1 },
  },
].map((row) => ({ ...row, group: 'compiled', needs: ['go', 'go-clients'] }) as ClientRow);

const nativeRoots = 'build it with the roots of the system; a finished program cannot be changed';

const rustRows: readonly ClientRow[] = [
  {
    ...{ name: 'rust-native-tls', client: 'Rust reqwest, native-tls', requests: 5, streams: true },
    ...{ needs: ['cargo', 'rust-native-tls'], version: crate('rust-native-tls', 'reqwest') },
    command: '{rust-native-tls}/clients',
  },
  {
    ...{ name: 'rust-rustls', client: 'Rust reqwest, rustls', requests: 5, streams: true, token: true },
    ...{ needs: ['cargo', 'rust-rustls'], version: crate('rust-rustls', 'reqwest') },
    command: '{rust-rustls}/clients',
  },
  {
    ...{ name: 'rust-webpki-roots', client: 'Rust reqwest, rustls with webpki-roots' },
    ...{ requests: 5, streams: true, needs: ['cargo', 'rust-webpki-roots'] },
    ...{ version: crate('rust-webpki-roots', 'reqwest'), command: '{rust-webpki-roots}/clients' },
    cure: { text: nativeRoots },
  },
  {
    ...{ name: 'rust-ureq', client: 'Rust ureq', requests: 4, needs: ['cargo', 'rust-ureq'] },
    ...{ version: crate('rust-ureq', 'ureq'), command: '{rust-ureq}/clients default' },
    cure: { text: '`RootCerts::PlatformVerifier`', command: '{rust-ureq}/clients platform' },
  },
  {
    ...{ name: 'rust-ureq-platform', client: 'Rust ureq, `RootCerts::PlatformVerifier`', requests: 4 },
    ...{ needs: ['cargo', 'rust-ureq'], version: crate('rust-ureq', 'ureq') },
    command: '{rust-ureq}/clients platform',
  },
].map((row) => ({ ...row, group: 'compiled' }) as ClientRow);

const javaRows: readonly ClientRow[] = [
  {
    ...{ name: 'java-http-client', client: 'HttpClient', version: 'java -version' },
    ...{ command: java('http-client'), requests: 5, streams: true },
  },
  {
    ...{ name: 'java-url-connection', client: 'HttpURLConnection', version: 'java -version' },
    ...{ command: java('url-connection'), requests: 5, streams: true },
  },
  {
    ...{ name: 'java-web-socket', client: 'HttpClient WebSocket', version: 'java -version' },
    ...{ command: java('web-socket'), requests: 1 },
  },
  {
    ...{ name: 'java-okhttp', client: 'OkHttp', version: jar('okhttp') },
    ...{ command: java('okhttp'), requests: 5, streams: true },
  },
  {
    ...{ name: 'java-apache-system', client: 'Apache HttpClient, `createSystem()`' },
    ...{ version: jar('httpclient5'), command: java('apache-system'), requests: 5, streams: true },
  },
  {
    ...{ name: 'java-apache', client: 'Apache HttpClient, `createDefault()`', version: jar('httpclient5') },
    ...{ command: java('apache'), requests: 5, streams: true },
    cure: { text: '`HttpClients.createSystem()`', command: java('apache-system') },
  },
].map((row) => ({ ...row, group: 'java', needs: ['java', 'maven', 'java-clients'] }) as ClientRow);

export const compiledRows: readonly ClientRow[] = [...goRows, ...rustRows, ...javaRows];
