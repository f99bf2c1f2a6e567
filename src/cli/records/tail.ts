// `sallyport tail`: shows the records of a running proxy while they come, those of the past not. A slow terminal loses records, and the
// proxy never waits for it.
import type { IncomingMessage } from 'node:http';
import { isObject } from '../../base/json/json-document.ts';
import { AdminUnreachable, openAdmin, readReply } from '../admin-client.ts';
import { parseCommandLine } from '../command/declaration.ts';
import { tailCommand } from '../command/inspection-commands.ts';
import { escapeControls, formatIssues } from '../issue-lines.ts';
import { formatRecord } from './record-line.ts';
import { readConfig } from '../settings.ts';

/** A record has some hundreds; what sends more is no proxy of ours. */
const MAX_LINE_CHARS = 1024 * 1024;
/** After so long without a byte the proxy is gone. */
const SILENT_MS = 60_000;
/** The parameters of the admin API that an option of the same name sets. */
const FILTERS = ['host', 'rule', 'callback', 'outcome', 'status', 'sandbox'] as const;

/** Exit code 0 when the proxy or the reader of the output ends, 1 if it cannot be followed, 2 for what must be corrected. */
export async function run(args: readonly string[]): Promise<number> {
  const { json = false, refused, ...options } = parseCommandLine(tailCommand, args).values;
  const { config: file, listen, 'admin-listen': adminListen, 'state-dir': stateDir } = options;
  const flags = { config: file, listen, 'admin-listen': adminListen, 'state-dir': stateDir };
  const config = await readConfig(flags as Parameters<typeof readConfig>[0], process.env);
  if (!config) return 2;
  const query = new URLSearchParams(refused ? { refused: 'true' } : {});
  for (const name of FILTERS) if (options[name] !== undefined) query.set(name, options[name]);
  try {
    const response = await openAdmin(config, `/v1/records?${query}`, { needsToken: true });
    if (response.statusCode !== 200) return await reportRejection(response);
    return await follow(response, json);
  } catch (error) {
    if (!(error instanceof AdminUnreachable)) throw error;
    process.stderr.write(`sallyport: ${error.message}\n`);
    return 1;
  }
}

async function reportRejection(response: IncomingMessage): Promise<number> {
  const { status, document } = await readReply(response);
  const detail = isObject(document) ? document['detail'] : undefined;
  if (status !== 422 || !Array.isArray(detail)) {
    const reason = typeof detail === 'string' ? `: ${escapeControls(detail)}` : '';
    process.stderr.write(`sallyport: the admin API responded with ${status}${reason}\n`);
    return 1;
  }
  const issues = detail.filter(isObject).map(({ loc, msg }) => {
    const name = Array.isArray(loc) ? String(loc.at(-1)) : '';
    return { loc: [`--${name}`], msg: String(msg) };
  });
  process.stderr.write(formatIssues('sallyport', issues));
  return 2;
}

async function follow(response: IncomingMessage, isJson: boolean): Promise<number> {
  response.setEncoding('utf8');
  // An empty line comes every 15 seconds.
  response.socket.setTimeout(SILENT_MS);
  let unfinished = '';
  let hasEnded = false;
  try {
    for await (const piece of response as AsyncIterable<string>) {
      const lines = (unfinished + piece).split('\n');
      unfinished = lines.pop() ?? '';
      if (unfinished.length > MAX_LINE_CHARS) break;
      const documents = lines.flatMap(parseLine);
      hasEnded ||= documents.some(({ notice }) => notice === 'ended');
      const shown = documents.map((document) => lineOf(document, isJson)).join('');
      if (shown !== '' && !(await print(shown))) return 0;
    }
  } catch {
    // The connection was cut.
  }
  process.stderr.write(
    `sallyport: ${hasEnded ? 'the proxy ends' : 'the connection to the admin API was cut'}\n`,
  );
  return hasEnded ? 0 : 1;
}

/** Nothing for an empty line, which keeps the connection open, and for what is no record. */
function parseLine(line: string): readonly Readonly<Record<string, unknown>>[] {
  try {
    const document: unknown = JSON.parse(line);
    return isObject(document) ? [document] : [];
  } catch {
    return [];
  }
}

function lineOf(document: Readonly<Record<string, unknown>>, isJson: boolean): string {
  if (isJson) return `${escapeControls(JSON.stringify(document))}\n`;
  if (document['notice'] === 'dropped')
    return `${Number(document['count'])} records were dropped: this output is read too slowly\n`;
  return document['notice'] === undefined ? `${formatRecord(document)}\n` : '';
}

/** Waits for the reader of the output. False: it has ended. */
async function print(text: string): Promise<boolean> {
  const { stdout } = process;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const onError = (): void => resolve(false);
  stdout.once('error', onError);
  stdout.write(text, (error) => resolve(!error));
  const isRead = await promise;
  stdout.off('error', onError);
  return isRead;
}
