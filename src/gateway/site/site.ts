// A target as its clients address it: below a path of an origin that it shares with others, or by a host name of its own.

export type Site = {
  readonly by: 'path' | 'host';
  /** Of its pages, as browsers write it. */
  readonly origin: string;
  /** What precedes the path that the target gets, or nothing. */
  readonly prefix: string;
  /** The host name and port by which clients address it. */
  readonly authority: string;
  /** Others by which the target may know itself; in lower case. */
  readonly aliases: readonly string[];
  /** Of the names of its cookies, where it shares its origin with others. */
  readonly cookiePrefix: string;
};
