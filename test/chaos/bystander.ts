// Clients that no fault targets: each repeats its request on one connection and counts the codes that it gets.
import { setTimeout as delay } from 'node:timers/promises';
import type { WireClient } from '../support/wire-client.ts';
import { fetchCodeOn, openTunnel, type Route, TunnelRefused } from './proxy-request.ts';

const CLIENTS = 2;
const PAUSE_MS = 20;

export type Bystander = {
  /** How often each code was seen. */
  readonly seen: ReadonlyMap<string, number>;
  /** The number of connections after the first of each client. */
  readonly reconnects: number;
  stop(): Promise<void>;
};

export function createBystander(route: Route, authority: string): Bystander {
  const seen = new Map<string, number>();
  const stopping = new AbortController();
  let connections = 0;

  async function repeatRequests(): Promise<void> {
    while (!stopping.signal.aborted) {
      let client: WireClient | undefined;
      try {
        connections += 1;
        client = await openTunnel(route, authority);
        await requestWhileConnected(client);
      } catch (error) {
        count(error instanceof TunnelRefused ? error.code : 'no connection');
      } finally {
        route.collect(client?.transcript ?? '');
        await client?.[Symbol.asyncDispose]();
      }
      await delay(PAUSE_MS);
    }
  }

  async function requestWhileConnected(client: WireClient): Promise<void> {
    while (!stopping.signal.aborted) {
      const code = await fetchCodeOn(client, authority);
      count(code);
      // A refused client opens a new connection.
      if (code !== '200') return;
      await delay(PAUSE_MS);
    }
  }

  function count(code: string): void {
    seen.set(code, (seen.get(code) ?? 0) + 1);
  }

  const running = Array.from({ length: CLIENTS }, repeatRequests);
  return {
    seen,
    get reconnects() {
      return connections - CLIENTS;
    },
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}
