// A client that is too slow, in TypeScript without packages, against `palisade-demo serve`.

declare const process: { env: Record<string, string | undefined> };
const gateway = process.env.GATEWAY ?? "http://127.0.0.1:8080";

type Problem = { status: number; detail: string };
type Lease = { fencing_token: string };
type Account = { id: string; balance: number };

async function call(method: string, path: string, body: object, token?: string): Promise<Response> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (token) headers["Fencing-Token"] = token;
  return fetch(gateway + path, { method, headers, body: JSON.stringify(body) });
}

/** The token to send with every write; waits for the lease for up to 10 s. */
async function acquire(): Promise<string> {
  const answer = await call("POST", "/v1/leases/account:42", { ttl_ms: 1000, wait_ms: 10000 });
  if (!answer.ok) throw new Error(((await answer.json()) as Problem).detail);
  return ((await answer.json()) as Lease).fencing_token;
}

async function write(token: string, balance: number): Promise<void> {
  const answer = await call("PUT", "/v1/accounts/42", { balance }, token);
  // Without this header the store has not checked the token.
  if (answer.ok && answer.headers.has("Fencing-Accepted")) {
    console.log("stored:", ((await answer.json()) as Account).balance);
  } else {
    const { status, detail } = (await answer.json()) as Problem;
    console.log("refused:", status, detail);
  }
}

const slow = await acquire();
await new Promise((wake) => setTimeout(wake, 1500)); // a pause: the lease runs out
const next = await acquire();
await write(next, 150);
await write(slow, 110);
