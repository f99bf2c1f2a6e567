// Addresses of the pages. Each keeps the workspace that the reader has named. Pure.

export type Links = {
  projects(): string;
  project(id: string, query?: Readonly<Record<string, string | undefined>>): string;
  run(run: { readonly session_id: string; readonly trace_id: string; readonly id: string }): string;
  raw(runId: string, field: string): string;
  /** Of all projects, or of one. */
  exports(projectId?: string): string;
};

export function createLinks(workspace: string | undefined): Links {
  const address = (path: string, query: Readonly<Record<string, string | undefined>> = {}): string => {
    const pairs = Object.entries({ ...query, workspace }).filter(
      ([, value]) => value !== undefined && value !== '',
    );
    const search = new URLSearchParams(pairs as [string, string][]).toString();
    return search === '' ? path : `${path}?${search}`;
  };
  return {
    projects: () => address('/traces'),
    project: (id, query) => address(`/traces/${id}`, query),
    run: ({ session_id, trace_id, id }) => address(`/traces/${session_id}/${trace_id}`, { run: id }),
    exports: (projectId) => address('/exports', { session_id: projectId }),
    raw: (runId, field) => address(`/traces/runs/${runId}/${field}`),
  };
}
