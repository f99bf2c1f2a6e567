// Bounds what is held for clients of WebSockets that read too slowly: of the box for which most is held, the slowest client is
// asked to connect again, and goes on with the output that is kept.

export type SendLimits = {
  /** For the clients of one box. */
  readonly boxBytes: number;
  readonly totalBytes: number;
};

const MEBIBYTE = 1024 * 1024;
export const defaultSendLimits: SendLimits = { boxBytes: 8 * MEBIBYTE, totalBytes: 64 * MEBIBYTE };

export type Follower = {
  readonly box: string;
  /** Asks the client to connect again. */
  leave(): void;
};

export class SendBudget {
  readonly #limits: SendLimits;
  readonly #boxes: Map<string, Map<Follower, number>> = new Map();
  readonly #bytesOf: Map<string, number> = new Map();
  #totalBytes = 0;

  constructor(limits: SendLimits) {
    this.#limits = limits;
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  /** So many bytes wait for this client now. */
  set(follower: Follower, bytes: number): void {
    const followers = this.#boxes.get(follower.box) ?? new Map<Follower, number>();
    const added = bytes - (followers.get(follower) ?? 0);
    if (added === 0) return;
    this.#boxes.set(follower.box, followers);
    followers.set(follower, bytes);
    this.#add(follower.box, added);
    if (added < 0) return;
    while ((this.#bytesOf.get(follower.box) ?? 0) > this.#limits.boxBytes) this.#release(follower.box);
    while (this.#totalBytes > this.#limits.totalBytes) this.#release(largestOf(this.#bytesOf));
  }

  /** It has left. */
  remove(follower: Follower): void {
    const followers = this.#boxes.get(follower.box);
    const bytes = followers?.get(follower);
    if (followers === undefined || bytes === undefined) return;
    followers.delete(follower);
    this.#add(follower.box, -bytes);
    if (followers.size > 0) return;
    this.#boxes.delete(follower.box);
    this.#bytesOf.delete(follower.box);
  }

  #release(box: string | undefined): void {
    const followers = this.#boxes.get(box ?? '');
    const slowest = followers === undefined ? undefined : largestOf(followers);
    if (slowest === undefined) throw new Error('bytes are counted that wait for nobody');
    this.remove(slowest);
    slowest.leave();
  }

  #add(box: string, bytes: number): void {
    this.#bytesOf.set(box, (this.#bytesOf.get(box) ?? 0) + bytes);
    this.#totalBytes += bytes;
  }
}

function largestOf<K>(counts: ReadonlyMap<K, number>): K | undefined {
  let found: K | undefined;
  let most = -1;
  for (const [key, count] of counts)
    if (count > most) {
      found = key;
      most = count;
    }
  return found;
}
