// The peers, and which of them each kind of run compares.
import type { Peer } from '../support/peer.ts';
import type { Level } from '../support/question.ts';
import { UsageError } from '../support/usage-error.ts';
import { haproxy } from './haproxy.ts';
import { goproxy, hudsucker } from './library-peers.ts';
import { mitmproxy } from './mitmproxy.ts';
import { nginx } from './nginx.ts';
import { httpMitmProxy, httpProxy3, mockttp } from './node-peers.ts';
import { squid } from './squid.ts';

const peers: readonly Peer[] = [
  nginx,
  haproxy,
  hudsucker,
  goproxy,
  squid,
  httpProxy3,
  httpMitmProxy,
  mockttp,
  mitmproxy,
];

const compared: Readonly<Record<Level, readonly string[] | undefined>> = {
  tiny: ['nginx', 'haproxy'],
  quick: ['nginx', 'goproxy', 'squid'],
  default: ['nginx'],
  full: undefined,
};

export function peersOf(level: Level, only: readonly string[] | undefined): readonly Peer[] {
  const names = only ?? compared[level];
  const unknown = names?.filter((name) => peers.every((each) => each.name !== name)) ?? [];
  if (unknown.length > 0)
    throw new UsageError(
      `--peers: there is no peer ${unknown.join(', ')}; the peers are ${peers.map(({ name }) => name).join(', ')}`,
    );
  return names === undefined ? peers : peers.filter(({ name }) => names.includes(name));
}
