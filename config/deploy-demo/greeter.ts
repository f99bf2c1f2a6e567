// A graph without a model: it greets, says whether it has its secret, and can call an API whose key only the proxy has.
import { Agent, get } from 'node:https';
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

const VERSION = 'first';

const State = Annotation.Root({
  name: Annotation<string>,
  url: Annotation<string>,
  greeting: Annotation<string>,
  response: Annotation<string>,
});

function greet({ name }: typeof State.State) {
  return { greeting: `${process.env['GREETING'] ?? 'No secret'}, ${name}: this is the ${VERSION} version` };
}

/** The proxy of the deployment adds the credential on the way. */
async function call({ url }: typeof State.State) {
  return { response: url ? await read(url) : '' };
}

/** Names below localhost are not proxied by default, and the API of the demo has one. */
const agent = new Agent({ proxyEnv: { HTTPS_PROXY: process.env['HTTPS_PROXY'] } });

function read(url: string): Promise<string> {
  return new Promise((resolve) => {
    const failed = (error: Error): void => resolve(`failed: ${error.message}`);
    get(url, { agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      response.on('end', () => resolve(`${response.statusCode} ${text}`)).on('error', failed);
    }).on('error', failed);
  });
}

export const graph = new StateGraph(State)
  .addNode('greet', greet)
  .addNode('call', call)
  .addEdge(START, 'greet')
  .addEdge('greet', 'call')
  .addEdge('call', END);
