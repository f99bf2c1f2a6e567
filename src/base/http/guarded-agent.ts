// Agents of node:http that connect to allowed addresses only, for clients of addresses that a tenant names. The address that was
// checked is the one that is connected to.
import { lookup as resolveName, type LookupAddress } from 'node:dns';
import { Agent as HttpAgent, type AgentOptions, type ClientRequestArgs } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import { type AddressRules, denyAddress } from '../address-guard.ts';

export class AddressDenied extends Error {
  override readonly name = 'AddressDenied';
}

export type GuardedAgents = Disposable & { readonly http: HttpAgent; readonly https: HttpsAgent };

type Connected = (error: Error | null, socket: Duplex) => void;
type Guard = (options: ClientRequestArgs) => Error | ClientRequestArgs;

export function createGuardedAgents(rules: AddressRules, options: AgentOptions = {}): GuardedAgents {
  const guard = createGuard(rules);
  const http = guarded(new HttpAgent(options), guard);
  const https = guarded(new HttpsAgent(options), guard);
  return {
    ...{ http, https },
    [Symbol.dispose]() {
      http.destroy();
      https.destroy();
    },
  };
}

function guarded<A extends HttpAgent>(agent: A, guard: Guard): A {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, connected) => {
    const allowed = guard(options);
    return allowed instanceof Error ? reject(allowed, connected) : connect(allowed, connected);
  };
  return agent;
}

/** As an error of the request, not of the call that made it. */
function reject(error: Error, connected: Connected | undefined): undefined {
  process.nextTick(() => (connected as ((error: Error) => void) | undefined)?.(error));
}

function createGuard(rules: AddressRules): Guard {
  return (options) => {
    const port = Number(options.port ?? 443);
    const check = (address: string): Error | undefined => {
      const denial = denyAddress(address, { port, mayBePrivate: false, denies: () => false }, rules);
      return denial && new AddressDenied(`the address may not be connected to: ${denial.cause}`);
    };
    const host = (options.host ?? options.hostname ?? '').replace(/^\[(.*)\]$/, '$1');
    // An address is not looked up.
    if (isIP(host) !== 0) return check(host) ?? options;
    return { ...options, lookup: createLookup(check) };
  };
}

/** Every address of the name must be allowed: which of them is connected to, is not decided here. */
function createLookup(check: (address: string) => Error | undefined): LookupFunction {
  return (name, options, found) => {
    resolveName(name, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      const [first] = addresses ?? [];
      const problem =
        error ?? addresses.map(({ address }) => check(address)).find((denied) => denied !== undefined);
      if (problem || first === undefined) found(problem ?? new Error('the name has no address'), '');
      else if (options.all === true) found(null, addresses);
      else found(null, first.address, first.family);
    });
  };
}
