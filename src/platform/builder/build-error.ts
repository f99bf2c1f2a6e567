// Why a revision cannot be built, for its owner: the message is the reason of the state and the last line of the log. Any other
// error is of the machine.

export type BuildFailure = 'CREATE_FAILED' | 'BUILD_FAILED';

export class BuildError extends Error {
  override readonly name: string = 'BuildError';
  /** `CREATE_FAILED`: the source cannot be built at all; `BUILD_FAILED`: building it went wrong. */
  readonly status: BuildFailure;

  constructor(status: BuildFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}
