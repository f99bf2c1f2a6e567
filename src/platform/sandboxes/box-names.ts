// The names of boxes: unique in a workspace, and never the form of an id, because paths take either.
import { randomBytes } from 'node:crypto';
import { SANDBOX_ID } from '../../base/sandbox-id.ts';
import { z } from '../../base/schema.ts';

const RULE = 'Input must be a label of lower case letters, digits and inner hyphens';
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

export const boxName = z
  .string()
  .min(1, { abort: true })
  .max(63, { abort: true })
  .regex(SANDBOX_ID, RULE)
  .refine((name) => !isBoxId(name), 'Input must not have the form of an id');

export function isBoxId(text: string): boolean {
  return UUID.test(text);
}

/** 50 random bits: two boxes of a workspace practically never get the same. */
export function generateName(): string {
  return `sandbox-${Array.from(randomBytes(10), (byte) => ALPHABET[byte % 32]).join('')}`;
}

/** Without characters that look alike. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789x';
