/** With `node --import` the tests take the packages of this folder, which ask for a newer Node than the gateway does. */
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    const isNewer = /^openai(\/|$)/.test(specifier) && !context.parentURL?.includes('/node_modules/');
    return next(specifier, isNewer ? { ...context, parentURL: import.meta.url } : context);
  },
});
