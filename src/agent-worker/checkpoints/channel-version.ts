// Versions of channels: a number that grows, with a random end. Two branches that fork from one checkpoint count from the same
// number, and the end keeps their values apart, since each version is stored once.
import { randomUUID } from 'node:crypto';

const DIGITS = 32;

/** Sorts after `current` as text. Other savers use plain numbers. */
export function createNextVersion(current: string | number | undefined): string {
  const count = current === undefined ? 0 : Number.parseInt(String(current), 10);
  return `${String(count + 1).padStart(DIGITS, '0')}.${randomUUID().slice(-17).replace('-', '')}`;
}
