// Addresses of the pages of exports. Each keeps the workspace that the reader has named. Pure.

export type Links = {
  exports(offset?: number): string;
  export(id: string): string;
  project(id: string): string;
};

export function createLinks(workspace: string | undefined): Links {
  const address = (path: string, offset = 0): string => {
    const query = new URLSearchParams();
    if (offset > 0) query.set('offset', String(offset));
    if (workspace !== undefined && workspace !== '') query.set('workspace', workspace);
    const search = query.toString();
    return search === '' ? path : `${path}?${search}`;
  };
  return {
    exports: (offset) => address('/exports', offset),
    export: (id) => address(`/exports/${id}`),
    project: (id) => address(`/traces/${id}`),
  };
}
