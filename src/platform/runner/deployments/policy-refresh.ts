// Brings changed rules of the proxy to what runs. A change that cannot be read or applied is tried again until it is: what was taken away
// must not stay in effect because a sidecar or the database did not respond once.

export type PolicyRefreshOptions = {
  /** Whether something runs that they are for. */
  isRunning(): boolean;
  /** Whether they are others than before. */
  read(): Promise<boolean>;
  /** To all that runs. */
  apply(): Promise<void>;
  onApplied(): void;
  /** Once, until they were applied. */
  onFailed(message: string): void;
};

export class PolicyRefresh {
  readonly #options: PolicyRefreshOptions;
  /** They may have changed since they were read. */
  #isDue = false;
  /** They have changed since they were applied to all. */
  #isUnapplied = false;
  #isWorking = false;
  #isReported = false;

  constructor(options: PolicyRefreshOptions) {
    this.#options = options;
  }

  /** A profile or a secret may have changed. Never rejects. */
  async request(): Promise<void> {
    this.#isDue = true;
    await this.#work();
  }

  /** Something runs that may have older ones. Never rejects. */
  async requestAgain(): Promise<void> {
    this.#isUnapplied = true;
    await this.request();
  }

  /** Called once in a while: what failed, or had nothing to be applied to, is tried again. */
  look(): void {
    if (this.#isDue) void this.#work();
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    try {
      while (this.#isDue && this.#options.isRunning()) {
        this.#isDue = false;
        await this.#once();
      }
    } catch (error) {
      this.#isDue = true;
      if (!this.#isReported)
        this.#options.onFailed(error instanceof Error ? error.message : 'they cannot be read');
      this.#isReported = true;
    } finally {
      this.#isWorking = false;
    }
  }

  async #once(): Promise<void> {
    const { read, apply, onApplied } = this.#options;
    const isChanged = await read();
    this.#isUnapplied ||= isChanged;
    if (!this.#isUnapplied) return;
    await apply();
    this.#isUnapplied = false;
    if (isChanged || this.#isReported) onApplied();
    this.#isReported = false;
  }
}
