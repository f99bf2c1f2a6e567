// What is written of an error that nobody caught: its class and where it was thrown. Its message and its members may have the
// request of a user, as those of HTTP clients do.

const MAX_FRAMES = 8;
const MAX_FRAME_CHARS = 300;
const CLASS_NAME = /^[\w$.]{1,100}$/;

/** One line. */
export function describeUncaught(reason: unknown): string {
  if (!(reason instanceof Error)) return typeof reason;
  const { name, message, stack } = reason;
  const names: readonly unknown[] = [name === 'Error' ? reason.constructor?.name : name, 'Error'];
  const found = names.find((one) => typeof one === 'string' && CLASS_NAME.test(one));
  return [found, ...framesOf(stack, message)].join(' ');
}

/** The message comes first in a stack, and may have lines like those of frames. */
function framesOf(stack: unknown, message: unknown): readonly string[] {
  if (typeof stack !== 'string' || typeof message !== 'string') return [];
  const at = stack.indexOf(message);
  if (at === -1) return [];
  const lines = stack.slice(at + message.length).split('\n');
  const frames = lines.map((line) => line.trim()).filter((line) => line.startsWith('at '));
  return frames.slice(0, MAX_FRAMES).map((frame) => frame.slice(0, MAX_FRAME_CHARS));
}
