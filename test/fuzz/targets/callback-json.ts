// Fuzz target: a callback's response gives the very headers that JSON.parse sees, each fit to be sent, or a reason that
// quotes nothing of it. Input: the bytes of the response.
import assert from 'node:assert/strict';
import { parseReply } from '../../../src/callback/reply.ts';
import { Secret } from '../../../src/base/secret.ts';
import { depthOf, readJson, repeatsName } from '../simple-json.ts';

const REASON =
  /^(?:empty body|body is (?:not JSON in UTF-8|nested too deeply|not an object with "headers")|body repeats a member name|"headers" is not an object|more than 64 headers|two headers have one name|the values together have more than 16384 bytes|the (?:name|value) of header [0-9]{1,2} (?:may not be injected|is not a (?:string|valid field value)))$/;
const NEVER =
  /^(?:host|content-length|transfer-encoding|connection|te|trailer|upgrade|keep-alive|expect|proxy-.*)$/;

export function fuzz(data: Buffer): void {
  const reply = parseReply(data);
  const json = readJson(data);
  const headers = json === undefined ? undefined : headersOf(json.value);
  const isSound =
    json !== undefined &&
    !repeatsName(json.text, json.value) &&
    depthOf(json.value) <= 32 &&
    headers !== undefined &&
    areInjectable(headers);
  assert.equal(reply.ok, isSound);
  if (!reply.ok) assert.match(reply.reason, REASON);
  else
    assert.deepEqual(
      reply.headers.map(({ name, value }) => [name, textOf(value)]),
      headers,
    );
}

function headersOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (!isObject(value) || !Object.hasOwn(value, 'headers')) return undefined;
  const { headers } = value as { headers: unknown };
  return isObject(headers) ? Object.entries(headers) : undefined;
}

function areInjectable(headers: readonly (readonly [string, unknown])[]): boolean {
  const names = headers.map(([name]) => name.toLowerCase().split('_').join('-'));
  const values = headers.map(([, value]) => value);
  return (
    headers.length <= 64 &&
    new Set(names).size === names.length &&
    headers.every(([name]) => /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/.test(name)) &&
    !names.some((name) => NEVER.test(name)) &&
    values.every((value) => typeof value === 'string' && isFieldValue(value)) &&
    values.join('').length <= 16_384
  );
}

function isFieldValue(value: string): boolean {
  return /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(value) && value.length <= 8192;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(value: Secret | string): string {
  return value instanceof Secret ? value.reveal() : value;
}
