// Addresses of the pages of exports. Each keeps the workspace that the reader has named. Pure.

export type Links = {
  /** Of all projects, or of one. */
  exports(page?: { readonly offset?: number; readonly projectId?: string | undefined }): string;
  /** `offset`: of the exports that it has made. */
  export(id: string, offset?: number): string;
  projects(): string;
  project(id: string): string;
};

export function createLinks(workspace: string | undefined): Links {
  const address = (path: string, offset = 0, projectId?: string): string => {
    const query = new URLSearchParams();
    if (projectId !== undefined) query.set('session_id', projectId);
    if (offset > 0) query.set('offset', String(offset));
    if (workspace !== undefined && workspace !== '') query.set('workspace', workspace);
    const search = query.toString();
    return search === '' ? path : `${path}?${search}`;
  };
  return {
    exports: ({ offset, projectId } = {}) => address('/exports', offset, projectId),
    export: (id, offset) => address(`/exports/${id}`, offset),
    projects: () => address('/traces'),
    project: (id) => address(`/traces/${id}`),
  };
}
