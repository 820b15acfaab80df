// What the scripts beside this file share. `node CLIENT.mjs URL MODEL STEP...` runs these steps, one after the other, and
// prints one JSON object: what each gave, or why it failed.

export const [url, model, ...chosen] = process.argv.slice(2);

export async function run(steps) {
  const told = {};
  for (const name of chosen) {
    try {
      told[name] = { gave: await steps[name]() };
    } catch (error) {
      told[name] = { failed: error.stack };
    }
  }
  console.log(JSON.stringify(told));
}

/** What a call that must fail threw, by the class that the SDK made of it. */
export async function thrown(call) {
  try {
    await call();
  } catch (error) {
    return {
      class: error.constructor.name,
      status: error.status,
      type: error.type,
      code: error.code,
      message: error.message,
      requestId: error.requestID,
      headers: Object.fromEntries(error.headers ?? []),
    };
  }
  throw new Error('it did not fail');
}

/** `call` once for each way to ask for speed, by the name of the way. */
export async function each(ways, call) {
  const told = {};
  for (const [name, fields] of Object.entries(ways)) told[name] = await call(fields);
  return told;
}
