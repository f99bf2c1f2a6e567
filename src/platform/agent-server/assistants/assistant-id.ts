// Ids of assistants. The default assistant of a graph has one that follows from the name of the graph (UUIDv5, RFC 9562), so
// that every process, every installation and every client finds the same.
import { createHash } from 'node:crypto';
import type { Deployment } from '../configuration/deployment.ts';

/** The namespace that clients of default assistants use. */
const NAMESPACE = Buffer.from('6ba7b8219dad11d180b400c04fd430c8', 'hex');
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Where an id of an assistant is asked for, the id of a graph is that of its default assistant. Undefined: neither. */
export function toAssistantId(graphs: Deployment['graphs'], text: string): string | undefined {
  if (graphs.has(text)) return defaultAssistantId(text);
  return UUID.test(text) ? text.toLowerCase() : undefined;
}

export function isDefaultAssistant(graphId: string, assistantId: string): boolean {
  return defaultAssistantId(graphId) === assistantId;
}

export function defaultAssistantId(graphId: string): string {
  const bytes = createHash('sha1').update(NAMESPACE).update(graphId, 'utf8').digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
