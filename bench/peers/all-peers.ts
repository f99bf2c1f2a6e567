// The peers, and which of them each kind of run compares.
import type { Peer } from '../support/peer.ts';
import type { Level } from '../support/question.ts';
import { haproxy } from './haproxy.ts';
import { nginx } from './nginx.ts';

const peers: readonly Peer[] = [nginx, haproxy];

const compared: Readonly<Record<Level, readonly string[] | undefined>> = {
  tiny: ['nginx', 'haproxy'],
  quick: ['nginx', 'goproxy', 'squid'],
  default: ['nginx'],
  full: undefined,
};

export function peersOf(level: Level, only: readonly string[] | undefined): readonly Peer[] {
  const names = only ?? compared[level];
  return names === undefined ? peers : peers.filter(({ name }) => names.includes(name));
}
