// Clients that no fault is aimed at: each asks again and again on one connection, and counts what it is answered.
import { setTimeout as delay } from 'node:timers/promises';
import type { WireClient } from '../support/wire-client.ts';
import { askOn, openTunnel, type Route, TunnelRefused } from './asking.ts';

const CLIENTS = 2;
const PAUSE_MS = 20;

export type Bystander = {
  /** How often each code was seen. */
  readonly seen: ReadonlyMap<string, number>;
  /** Connections beyond the first of each client. */
  readonly reconnects: number;
  stop(): Promise<void>;
};

export function createBystander(route: Route, authority: string): Bystander {
  const seen = new Map<string, number>();
  const stopping = new AbortController();
  let connections = 0;

  async function askAgain(): Promise<void> {
    while (!stopping.signal.aborted) {
      let client: WireClient | undefined;
      try {
        connections += 1;
        client = await openTunnel(route, authority);
        await askWhileItStands(client);
      } catch (error) {
        count(error instanceof TunnelRefused ? error.code : 'no connection');
      } finally {
        route.keep(client?.transcript ?? '');
        await client?.[Symbol.asyncDispose]();
      }
      await delay(PAUSE_MS);
    }
  }

  async function askWhileItStands(client: WireClient): Promise<void> {
    while (!stopping.signal.aborted) {
      const code = await askOn(client, authority);
      count(code);
      // Whoever is refused comes back on a connection of its own.
      if (code !== '200') return;
      await delay(PAUSE_MS);
    }
  }

  function count(code: string): void {
    seen.set(code, (seen.get(code) ?? 0) + 1);
  }

  const running = Array.from({ length: CLIENTS }, askAgain);
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
