// Why a text is no JSON, or none that is taken. Never quotes it.

export class InvalidJson extends Error {
  override readonly name: string = 'InvalidJson';
  /** Of the first wrong byte, from the beginning of the text. */
  readonly position: number;

  constructor(message: string, position: number) {
    super(message);
    this.position = position;
  }
}
