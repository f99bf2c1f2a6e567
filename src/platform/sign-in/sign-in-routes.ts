// `/login` and `/logout`: a key becomes a session of a browser. The forms work without a script.
import { DomainError } from '../../base/domain-error.ts';
import { z } from '../../base/schema.ts';
import type { Access, Entry, Grant } from '../api/access.ts';
import { byteUpload, type Upload } from '../api/body/upload.ts';
import { type Handling, type Route, defineRoute } from '../api/route.ts';
import {
  endedCookie,
  requireFormToken,
  requireOwnPage,
  sessionCookie,
  sessionIn,
} from '../api/session/session-cookie.ts';
import { appendEvent } from '../audit/journal.ts';
import type { Caller } from '../identity/authentication.ts';
import { groupOf } from '../identity/failure-limit.ts';
import { createSession, endSession, findSession, formTokenOf } from '../identity/sessions.ts';
import type { Transaction } from '../store/database.ts';
import { pageErrors, pageFields, signedInPage, signInPage } from './sign-in-page.ts';

type Visitor = Grant & { readonly entry: Entry };

/** Anybody, with what the sign-in must know of the request. */
const visitor: Access<Visitor> = {
  to: 'anyone',
  schemes: [],
  parameters: [],
  enter: async (entry) => ({ entry }),
  confirm: async (_, granted) => granted,
  // A network of IPv6, like an address of IPv4, so that nobody takes all places with slow forms.
  callerOf: ({ entry }) => groupOf(entry.peer),
};

const MAX_FORM_BYTES = 4096;
const bytes = byteUpload(['application/x-www-form-urlencoded'], {
  codings: [],
  ...{ maxSentBytes: MAX_FORM_BYTES, maxBytes: MAX_FORM_BYTES, idleMs: 10_000, totalMs: 10_000 },
});
const form: Upload<() => Promise<URLSearchParams>> = {
  mediaTypes: bytes.mediaTypes,
  open(request) {
    const content = bytes.open(request);
    return async () => new URLSearchParams(Buffer.concat(await Array.fromAsync(content)).toString());
  },
};

const shared = { tag: 'Sign-in', access: visitor, errors: pageErrors } as const;
/** Of an address. In all as many as other clients can wait for: a form is small, and its write waits in the share of its key. */
const RUNNING = { total: 256, perCaller: 4 };
/** Whoever sends a cookie with the page has it looked up. */
const RUNNING_PAGES = { total: 256, perCaller: 16 };
const HTML = { textType: 'text/html' } as const;

export const signInRoutes: readonly Route[] = [
  defineRoute({
    ...shared,
    method: 'GET',
    path: '/login',
    summary: 'Sign in to the pages of the platform (HTML)',
    tracking: { untracked: 'it shows a form' },
    query: z.object({ next: z.string().max(512).optional().describe('Where to go then: a path') }),
    responses: { 200: HTML },
    failures: [401],
    limits: { running: RUNNING_PAGES },
    async handle({ entry, query }) {
      const text = sessionIn(entry);
      const session = text && (await findSession(entry.db, text, entry.authenticator.now()));
      const isSignedIn = text !== undefined && session !== undefined;
      const body = isSignedIn ? signedInPage(formTokenOf(text)) : signInPage({ next: localPath(query.next) });
      return { body, fields: pageFields };
    },
  }),
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/login',
    summary: 'Begin a session with an API key (form)',
    tracking: { untracked: 'it records the operation login itself: the caller is known with the form alone' },
    upload: form,
    responses: { 303: null },
    failures: [401, 403],
    limits: { running: RUNNING },
    async prepare({ entry, upload }) {
      const { head, origin, peer, authenticator, db } = entry;
      if (origin === undefined) throw new DomainError('forbidden', NO_TLS);
      // Otherwise another site could sign its reader in with a key of its own.
      requireOwnPage({ head, origin });
      const fields = await upload();
      const apiKey = fields.get('key') ?? '';
      const caller = await authenticator.authenticate(db, { apiKey, bearer: undefined, peer });
      // From here on within the rate and the share of the key, like every write.
      entry.onCaller({ caller, organizationId: caller.organization.id });
      return { caller, origin, next: localPath(fields.get('next') ?? undefined) };
    },
    async handle({ db, entry }, { caller, origin, next }) {
      // A POST runs in a transaction.
      const session = await signIn(db as Transaction, entry, caller);
      return { fields: { Location: next, 'Set-Cookie': sessionCookie(origin, session) } };
    },
  }),
  defineRoute({
    ...shared,
    method: 'POST',
    path: '/logout',
    summary: 'End the session (form)',
    tracking: { untracked: 'the tracked operations have no end of a session' },
    upload: form,
    responses: { 303: null },
    failures: [401, 403],
    limits: { running: RUNNING },
    async prepare({ entry, upload }) {
      const session = sessionIn(entry);
      const token = (await upload()).get('csrf_token') ?? undefined;
      if (session !== undefined) requireFormToken(entry, session, token);
      return session;
    },
    async handle({ db, entry: { origin } }: Visitor & Handling, session) {
      if (session !== undefined) await endSession(db, session);
      const cookie = origin === undefined ? {} : { 'Set-Cookie': endedCookie(origin) };
      return { fields: { Location: '/login', ...cookie } };
    },
  }),
];

const NO_TLS =
  'Sessions need TLS: ask for this page by https, with the proxy in front among trusted_proxies or with public_url set';

/** Ends the session that the browser had: its id may be known to somebody else. Returns the text of the new one. */
async function signIn(trx: Transaction, entry: Entry, caller: Caller): Promise<string> {
  const { authenticator, head, client, requestId } = entry;
  const confirmed = await authenticator.confirm(trx, caller);
  const earlier = sessionIn(entry);
  if (earlier !== undefined) await endSession(trx, earlier);
  const session = await createSession(trx, confirmed.keyId, authenticator.now());
  await appendEvent(trx, {
    operation: 'login',
    organizationId: confirmed.organization.id,
    isSuccess: true,
    userId: confirmed.userId,
    keyId: confirmed.keyId,
    issuedBy: confirmed.issuedBy,
    resources: [session.id],
    status: 303,
    request: {
      ...{ method: head.method, path: '/login', id: requestId },
      ...{ clientHost: client.host, clientPort: client.port, forwardedFor: head.field('x-forwarded-for') },
    },
  });
  return session.text;
}

/** Anything else could lead to another site: `//host`, `/\host`, a control character that browsers skip. */
function localPath(text = ''): string {
  const isLocal =
    /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,511}$/.test(text) && URL.canParse(text, 'http://a.invalid');
  return isLocal && new URL(text, 'http://a.invalid').host === 'a.invalid' ? text : '/login';
}
