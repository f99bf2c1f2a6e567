// I2 and I12 over generated HTTP/2 traffic: sessions of many streams whose requests the host responds to, cuts, resets, or does
// not look at, and which their clients cancel. Requests and the checks of responses come from the load over HTTP/2.
import { constants } from 'node:http2';
import * as fc from 'fast-check';
import { ORIGIN_NAME, INJECTED, type Ending, createLoadOrigin, pathOf } from '../e2e/h2-load-origin.ts';
import { type Ended, type LoadRequest, type Verdict, ask } from '../e2e/h2-load-request.ts';
import { openH2Tunnel } from '../support/h2-tunnel.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { createTestSidecar } from '../support/test-sidecar.ts';

export type StreamFigures = {
  readonly seed: number;
  readonly verdicts: Readonly<Partial<Record<Verdict, number>>>;
  readonly error: string | undefined;
};

type Part = Pick<LoadRequest, 'ending' | 'size' | 'cancelledAt'> & { readonly bodyBytes: number | null };

const part: fc.Arbitrary<Part> = fc.record({
  ending: fc.constantFrom<Ending[]>('whole', 'whole', 'whole', 'whole', 'silent', 'cut', 'unread', 'leave'),
  size: fc.constantFrom(2, 64, 2_048, 40_000),
  bodyBytes: fc.option(fc.constantFrom(0, 1, 512, 20_000), { freq: 2 }),
  cancelledAt: fc.constantFrom(...Array.from({ length: 9 }, () => undefined), 'once', 'head', 'data'),
});
const crowds: fc.Arbitrary<readonly (readonly Part[])[]> = fc.array(
  fc.array(part, { minLength: 1, maxLength: 12 }),
  { minLength: 1, maxLength: 4 },
);

export async function runStreams(options: {
  readonly crowds: number;
  readonly seed: number;
}): Promise<StreamFigures> {
  const authority = createTestAuthority();
  const arrivals = new Map<string, number>();
  await using origin = await createLoadOrigin(authority, (path) =>
    arrivals.set(path, (arrivals.get(path) ?? 0) + 1),
  );
  const headers = [{ name: 'Authorization', type: 'opaque', value: INJECTED }];
  await using proxy = await createTestSidecar({
    proxyConfig: { rules: [{ name: 'streams', match_hosts: [ORIGIN_NAME], headers }] },
    origins: authority,
  });
  const verdicts: Partial<Record<Verdict, number>> = {};
  const target = { proxyPort: proxy.port, authority: `${ORIGIN_NAME}:${origin.port}`, ca: proxy.caPem };
  let nonce = 0;

  async function play(parts: readonly Part[]): Promise<void> {
    const session = await openH2Tunnel(target);
    session.on('error', () => undefined);
    const requests = parts.map(({ bodyBytes, ...rest }): LoadRequest => {
      const body = bodyBytes === null ? undefined : Buffer.alloc(bodyBytes, 'b');
      return { ...rest, nonce: `n${(nonce += 1)}`, body };
    });
    const ended = await Promise.all(
      requests.map((one) => new Promise<Ended>((resolve) => ask(session, one, resolve))),
    );
    session.destroy();
    for (const [i, { verdict, error }] of ended.entries()) {
      const one = requests[i];
      if (!one) throw new Error('an end without a request');
      const count = arrivals.get(pathOf(one)) ?? 0;
      // After the GOAWAY of another request's host a client learns that nothing was done: then nothing was.
      const isUnread = count === 0 && error?.endsWith(`reset ${constants.NGHTTP2_REFUSED_STREAM}`) === true;
      const reported = isUnread ? 'unread' : verdict;
      verdicts[reported] = (verdicts[reported] ?? 0) + 1;
      if (error !== undefined && !isUnread) throw new Error(`${error}; it arrived ${count} times`);
      if (count > (one.ending === 'unread' ? 2 : 1)) throw new Error(`${pathOf(one)} arrived ${count} times`);
    }
  }

  const property = fc.asyncProperty(crowds, async (crowd) => {
    await Promise.all(crowd.map(play));
  });
  const { failed, errorInstance, counterexample } = await fc.check(property, {
    numRuns: options.crowds,
    seed: options.seed,
    endOnFailure: true,
    unbiased: true,
  });
  const error = failed ? `${String(errorInstance)} in ${JSON.stringify(counterexample)}` : undefined;
  return { seed: options.seed, verdicts, error };
}
