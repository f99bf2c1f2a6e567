// A browser as far as the page is concerned: it sends its cookie, and the origin of its forms.
import { type AdminScene, field, TOKEN } from '../admin-scene.ts';
import type { WireResponse } from '../../support/wire-client.ts';

export const HOST = 'localhost:3129';
export const ORIGIN = `http://${HOST}`;

export type SentForm = Readonly<Record<string, string>>;
export type Sent = {
  readonly host?: string;
  /** Undefined: none is sent. */
  readonly origin?: string | undefined;
  readonly cookie?: string;
  readonly more?: readonly string[];
};

export class PageVisitor {
  cookie = '';
  readonly #scene: Pick<AdminScene, 'ask'>;

  constructor(scene: Pick<AdminScene, 'ask'>) {
    this.#scene = scene;
  }

  get(path: string, { host = HOST, cookie = this.cookie, more = [] }: Sent = {}): Promise<WireResponse> {
    return this.#scene.ask('GET', path, { fields: [`Host: ${host}`, ...cookieField(cookie), ...more] });
  }

  async post(path: string, form: SentForm, sent: Sent = {}): Promise<WireResponse> {
    const { host = HOST, cookie = this.cookie, more = [] } = sent;
    const origin = 'origin' in sent ? sent.origin : ORIGIN;
    const fields = [
      ...[`Host: ${host}`, ...cookieField(cookie), ...more],
      ...(origin === undefined ? [] : [`Origin: ${origin}`]),
      'Content-Type: application/x-www-form-urlencoded',
    ];
    return this.#scene.ask('POST', path, { fields, body: new URLSearchParams(form).toString() });
  }

  /** Reads the form, sends the token with it, and keeps the cookie. */
  async signIn(form: SentForm = {}, sent: Sent = {}): Promise<WireResponse> {
    const { host } = sent;
    const page = await this.get('/ui', { ...(host !== undefined && { host }), cookie: '' });
    const response = await this.post(
      '/ui/sign-in',
      { token: TOKEN, next: '/ui', form_token: formTokenIn(page), ...form },
      sent,
    );
    this.cookie = field(response, 'set-cookie')?.replace(/;.*$/, '') ?? this.cookie;
    return response;
  }
}

export function formTokenIn({ text }: WireResponse): string {
  return /name="form_token" value="([\w-]{43})"/.exec(text)?.[1] ?? '';
}

function cookieField(cookie: string): readonly string[] {
  return cookie === '' ? [] : [`Cookie: ${cookie}`];
}
