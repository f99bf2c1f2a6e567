// TLS version and cipher suite of each subject, between client and proxy and between proxy and origin. A subject with another one
// does other work than the rest: that is a warning, not the end of a run. Node does not tell a server the key exchange group.

export type Suites = { readonly client: readonly string[]; readonly upstream: readonly string[] };
export type SubjectSuites = Readonly<Record<string, Suites>>;

export type SuiteLog = {
  add(subject: string, client: readonly string[], upstream: readonly string[]): void;
  all(): SubjectSuites;
};

export function createSuiteLog(): SuiteLog {
  const known = new Map<string, Record<keyof Suites, Set<string>>>();
  return {
    add(subject, client, upstream) {
      const sides = known.getOrInsertComputed(subject, () => ({ client: new Set(), upstream: new Set() }));
      client.forEach((suite) => sides.client.add(suite));
      upstream.forEach((suite) => sides.upstream.add(suite));
    },
    all: () =>
      Object.fromEntries(
        [...known].map(([subject, { client, upstream }]) => [
          subject,
          { client: [...client], upstream: [...upstream] },
        ]),
      ),
  };
}

/** What most subjects negotiated, on either side; undefined without a connection. */
export function commonSuite(all: SubjectSuites): string | undefined {
  const seen = Object.values(all).flatMap(({ client, upstream }) => [...client, ...upstream]);
  const counted = [...Map.groupBy(seen, (suite) => suite)].map(([suite, { length }]) => ({ suite, length }));
  return counted.toSorted((a, b) => b.length - a.length)[0]?.suite;
}

export function suiteWarnings(all: SubjectSuites): readonly string[] {
  const common = commonSuite(all);
  return Object.entries(all).flatMap(([subject, { client, upstream }]) => {
    const other = (side: string, suites: readonly string[]): readonly string[] =>
      suites
        .filter((suite) => suite !== common)
        .map((suite) => `${subject} used ${suite} ${side}, and most others ${common}: compare with care`);
    return [...other('with its clients', client), ...other('with the origin', upstream)];
  });
}
