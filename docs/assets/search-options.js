// A word that begins with a hyphen excludes pages from a search: the name of an option, `--dim`, is sought without.
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (message, ...others) {
  if (typeof message?.data === "string") {
    message = { ...message, data: message.data.replace(/(^|[\s"(])--(?=\w)/g, "$1") };
  }
  return postMessage.call(this, message, ...others);
};
