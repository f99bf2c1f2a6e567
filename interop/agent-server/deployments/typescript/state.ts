// The states of the graphs, in a file of their own: imported without an extension, as bundlers allow.
import { Annotation, MessagesAnnotation } from '@langchain/langgraph';

export enum Decision {
  yes = 'yes',
  no = 'no',
}

export const TrailState = Annotation.Root({
  trail: Annotation<string[]>({ reducer: (one, two) => [...one, ...two], default: () => [] }),
  count: Annotation<number>({ reducer: (_, next) => next, default: () => 0 }),
});

export const ApprovalState = Annotation.Root({
  request: Annotation<string>,
  decision: Annotation<string | undefined>,
});

export const LoopState = Annotation.Root({
  rounds: Annotation<number>,
  done: Annotation<number>({ reducer: (_, next) => next, default: () => 0 }),
  pause: Annotation<number>,
});

export const ReportState = Annotation.Root({ seen: Annotation<Record<string, unknown>> });

export { MessagesAnnotation };
