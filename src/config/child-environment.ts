/** The part of the environment that child processes inherit. */

/** What ffmpeg, Python and pip need: programs, folders, language, proxies, certificates and the settings of pip. */
const FOR_CHILDREN =
  /^(PATH|HOME|USER|LOGNAME|TMPDIR|LANG|TZ|LC_.*|XDG_.*|NETRC|PIP_.*|KEYRING_.*|(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|SYSTEMROOT)$/i;

/** Keys and tokens are in the environment as well, so only what is needed is handed on. */
export function childEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => FOR_CHILDREN.test(name)));
}
