// Keys that let their owner in, or the studio: what a gate asks of whoever knows them. A file of keys is one of these; a
// deployment has the keys of its platform.

export type KeyOwner = {
  /** Identifies the key, and does not disclose it. */
  readonly keyId: string;
  /** What graphs and handlers see. */
  readonly identity: string;
};

export type KeyPort = {
  /** Undefined for a key that is not valid. Throws a DomainError `unavailable` where that cannot be found out. */
  find(key: string): Promise<KeyOwner | undefined>;
  /** Of keys that were valid, those that are not any more, by their ids. */
  findRevoked(keyIds: ReadonlySet<string>): Promise<ReadonlySet<string>>;
};
