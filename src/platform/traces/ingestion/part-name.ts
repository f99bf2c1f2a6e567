// The names of the parts of a multipart body: what a part is, and which run it is of. Pure.
import { isPayload } from './run-reader.ts';
import type { PayloadField } from './field-writer.ts';
import type { Kind } from './run-schema.ts';

export type PartName =
  /** The run without its payloads. */
  | { readonly kind: Kind; readonly id: string; readonly field: undefined }
  | { readonly kind: Kind; readonly id: string; readonly field: PayloadField }
  | { readonly kind: 'feedback'; readonly id: string }
  | { readonly kind: 'attachment'; readonly id: string; readonly name: string };

const PATTERN =
  /^(post|patch|feedback|attachment)\.([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?:\.([^.]+))?$/;

/** Undefined for a name that is none of those. */
export function parsePartName(text: string): PartName | undefined {
  const [, kind, written = '', rest] = PATTERN.exec(text) ?? [];
  const id = written.toLowerCase();
  if (kind === 'post' || kind === 'patch') {
    if (rest === undefined) return { kind, id, field: undefined };
    return isPayload(rest) ? { kind, id, field: rest } : undefined;
  }
  if (kind === 'feedback') return rest === undefined ? { kind, id } : undefined;
  return kind === 'attachment' && rest !== undefined ? { kind, id, name: rest } : undefined;
}
