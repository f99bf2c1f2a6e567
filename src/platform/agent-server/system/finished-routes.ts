// What all routes of the agent server have in common, put on them at one place: the format of errors, the pages that may call
// them, the prefix of their paths; and which of them the configuration leaves out.
import type { Cors } from '../../api/contract/cors.ts';
import { type ErrorFormat, problemErrors, textErrors } from '../../api/contract/error-formats.ts';
import { mount } from '../../api/contract/mount.ts';
import type { Route } from '../../api/route.ts';
import type { CorsSettings } from '../configuration/cors-document.ts';
import type { Disabled, HttpSettings } from '../configuration/deployment.ts';

/** The tag of the routes that a key of the configuration leaves out. */
const TAGS: Readonly<Record<string, Disabled>> = {
  Assistants: 'assistants',
  Threads: 'threads',
  Runs: 'runs',
};

/** Fields by which clients learn where a run is, and where a list goes on. */
const EXPOSED = ['Content-Location', 'Location', 'X-Pagination-Next', 'X-Pagination-Total'];

export function finishRoutes(routes: readonly Route[], http: HttpSettings): readonly Route[] {
  const shared = { errors: errorsOf(http), cors: toCors(http.cors) };
  const left = routes.filter(({ tag }) => {
    const part = TAGS[tag];
    return part === undefined || !http.disabled.has(part);
  });
  return mount(
    left.map((route) => ({ ...route, ...shared })),
    { under: [http.mountPrefix] },
  );
}

export function errorsOf({ errorFormat }: Pick<HttpSettings, 'errorFormat'>): ErrorFormat {
  return errorFormat === 'text' ? textErrors : problemErrors;
}

export function toCors(settings: CorsSettings): Cors {
  return {
    origins: settings.origins,
    pattern: settings.originPattern,
    methods: settings.methods,
    headers: settings.headers,
    exposed: [...EXPOSED, ...settings.exposed],
    allowsCredentials: settings.allowsCredentials,
    maxAgeSeconds: settings.maxAgeSeconds,
  };
}
