/**
 * The limits on what clients can make the gateway hold, wait for or compute, in one place. docs/limits.md lists
 * them together with those that are settings (config.ts) and those of the addon, each with the test in which it bites.
 * Tests run the gateway with smaller limits where they cannot wait as long or send as much.
 */

export const BUDGETS = {
  /** Every connection, before it is known what it wants. SVC_MAX_CONNECTIONS limits how many there are. */
  connection: {
    /** A new connection, and one that has begun another request, must have sent a whole head by then. */
    headMs: 10_000,
    headBytes: 16 * 1024,
    headFields: 100,
    /** The time from the head of a request to the end of its body. Uploads and forwarded bodies have other limits. */
    bodyMs: 60_000,
    /** The requests that a client may send on one connection before the first of them is answered. */
    unanswered: 8,
    /** A new connection is spared for this long where a used one can give way: its request may be on its way. */
    sparedMs: 1000,
  },
  /** Keys, and the sessions of the dashboard that stand for one. */
  access: {
    /** The wrong keys from one address (IPv6: a network of 64 bits) in `wrongKeysMs`. */
    wrongKeys: 10,
    wrongKeysMs: 60_000,
    /** The addresses whose wrong keys are counted; the one that has been silent longest is forgotten. */
    addresses: 10_000,
    sessionBytes: 8 * 1024,
    sessions: 100,
    lifetimeMs: 86_400_000,
  },
  /** `fieldNameSize` is in characters, `fieldSize` in bytes, and the others are counts. A part is a field or a file. */
  form: {
    /**
     * A form has room for a list of 100 keywords, all other fields, some fields that only other servers know, and a
     * prompt of 64 KiB. One file is kept; the others are skipped, as unknown fields are. Only known names are looked
     * into (form-fields.ts).
     */
    transcription: { files: 16, fields: 128, parts: 144, fieldSize: 64 * 1024 },
    /**
     * The parser turns brackets in a name into arrays and objects. Without limits on names one short name makes an
     * array of millions of items, or thousands of nested objects.
     */
    admin: {
      fieldNameSize: 100,
      fieldNestingDepth: 1,
      fieldArrayIndexLimit: 99,
      files: 0,
      fields: 8,
      parts: 8,
      fieldSize: 1024,
    },
  },
  /**
   * Uploads of audio, and all bodies that are received as they are. How many may be there at once, and their bytes
   * together, are settings.
   */
  upload: {
    /** An upload is ended when its client has sent nothing for this long. */
    stallMs: 60_000,
    /** A client that is slower than this rate uses up `stallMs` little by little. */
    leastBytesPerSec: 4096,
    /** The lead over the least rate that an upload can gain: it may pause for so long before it is behind. */
    leadMs: 2000,
    /** When all places are taken, a new upload waits this long, so that its own bytes show how fast it comes. */
    graceMs: 100,
    /** The longest time that one upload may take, however steadily it arrives. */
    totalMs: 7_200_000,
    /** The memory for the text fields of all forms together. */
    maxFieldBytes: 32 * 1024 * 1024,
    /** What uploads leave free on their disk for everything else. */
    leastFreeBytes: 64 * 1024 * 1024,
  },
  /** The processes of ffmpeg. The addon has four decoder threads of its own, however many files are open. */
  ffmpeg: {
    maxProcesses: 4,
    /** The longest time that a request waits for one of the processes. */
    maxWaitMs: 10_000,
    /**
     * The processor time of a process, and the time of the clock for which the gateway waits for it, in both cases
     * with a second more for every `audioSecPerSec` of audio. ffmpeg decodes hundreds of times faster than real time,
     * so only a file made to waste time needs more.
     */
    cpuMs: 60_000,
    wallMs: 60_000,
    audioSecPerSec: 20,
    addressSpaceBytes: 1024 ** 3,
    openFiles: 32,
    /** The largest file that a process may write. */
    fileBytes: 0,
  },
  /** Telling speakers apart. */
  speakers: {
    /** The most speakers of one audio. */
    most: 20,
    /** The most voices that are compared with each other; of more, those that are most alike count as one. */
    maxPoints: 256,
    /** The known voices of a request, as OpenAI's. */
    references: 4,
    /** A name has at most this many characters. */
    nameSize: 100,
    /** A reference, as the data URL that is sent: 10 s of 48 kHz stereo in 16 bits have room. */
    referenceBytes: 3 * 1024 * 1024,
    leastReferenceMs: 2000,
    longestReferenceMs: 10_000,
  },
  /** Requests that asked to wait for the slot (`Prefer: wait`). For how long they may is a setting. */
  waiting: {
    /** The requests that may wait at once; one more is refused as if it had not asked. */
    requests: 32,
    /** The time that the first of them has for its body before the next one is called as well. */
    calledMs: 1000,
  },
  /** Texts to align, in UTF-8. Six hours of fast speech have room. */
  alignment: { textBytes: 512 * 1024 },
  /** Live sessions. How many there are at once, and how long an utterance waits for the slot, are settings. */
  live: {
    /** The longest message of a client: 15 MiB of audio in base64, as OpenAI's, with room for the rest of the event. */
    messageBytes: 16 * 1024 * 1024,
    /** Messages longer than this are large. 4 s of 24 kHz in base64 have room. */
    largeBytes: 256 * 1024,
    /** The sessions that may be in the middle of a large message; the others are not read further. */
    largeMessages: 4,
    /** The time for a large message to come, and that a session waits to send one. */
    largeMessageMs: 60_000,
    /** What is read of a connection before it is handled. */
    aheadBytes: 256 * 1024,
    /** The longest message without audio. */
    eventBytes: 256 * 1024,
    /** The commas and opening brackets of a message. Settings with 100 keywords and a long prompt have room. */
    eventValues: 8192,
    /** The audio that a client may leave in its buffer when it ends its utterances itself. */
    utteranceMs: 300_000,
    /**
     * The audio of utterances that wait for their texts. Beyond it the session reads no more until one has its text.
     */
    pendingMs: 30_000,
    /** What a client may leave unread. */
    unreadBytes: 1024 * 1024,
    /** The time for which it may leave an event unread. One of an answer holds the slot meanwhile. */
    unreadMs: 30_000,
    /** The time between two signs of life. A client from which nothing came for twice as long is gone. */
    pingMs: 20_000,
    /** The same to a client that is not read now. When it leaves, only a write that fails tells. */
    unreadPingMs: 1000,
    /** A session in which the client sends no audio for this long is closed. */
    idleMs: 600_000,
    /** The longest session. */
    sessionMs: 86_400_000,
    /** The time that a client has to take the last events and to close its side. */
    closeMs: 2000,
  },
  /** Conversations of live sessions. */
  conversation: {
    /** The items that are remembered, and the bytes of their text; the oldest are forgotten first. */
    items: 1000,
    bytes: 1024 * 1024,
    /** Of one answer. */
    answerCharacters: 64 * 1024,
    /** The responses of a session that go on at once: that of the conversation, and some out of band. */
    responses: 4,
    /** The tools of a session. */
    tools: 128,
    /** The calls of tools in one answer. */
    calls: 128,
    /** The number of messages for which it is tracked how much was heard. */
    playbacks: 64,
    /** A line of the chat daemon's answer. */
    chatLineBytes: 1024 * 1024,
    /** For the count of tokens and the end of the answer, once the chat daemon has said why it ends. */
    chatClosingMs: 2000,
  },
  /** The audio that a speech upstream makes of a text. One that does not come to an end would hold the slot. */
  spokenText: {
    /** The least that any text may take, however short it is. */
    leastMs: 60_000,
    /** For each of its characters, also where each is a syllable and the speed is the slowest. */
    characterMs: 1000,
  },
  /** The short-lived keys of live sessions. */
  clientSecrets: {
    /** Of all clients together. Each holds the settings that it was made with. */
    most: 1000,
    /** The settings, as JSON. */
    bodyBytes: 16 * 1024,
  },
  /** The time of the event loop that the clients of live sessions and of Wyoming may take, all together. */
  eventLoop: {
    /** The part of the time, 0..1. The 32 sessions of 24 kHz that there may be take half of it on a slow processor. */
    share: 0.8,
    /** The part while a request holds the slot, whose threads share the processor with the event loop. */
    busyShare: 0.3,
    /** A client's slice ends when it has taken this long; the last piece within it may take longer. */
    sliceMs: 1,
    /** What may be taken ahead of the share. */
    burstMs: 5,
  },
  /** The waits of `voxgate live`. */
  liveClient: {
    /** For the connection, and then for the settings to be accepted. */
    openMs: 10_000,
    /** Between two pings. */
    pingMs: 20_000,
    /** For any byte of the gateway. It sends pings, too, also while it reads no audio. */
    silenceMs: 60_000,
    /** For the last texts after the audio has ended. */
    lastTextMs: 60_000,
  },
  /** Wyoming. How many transcriptions there are at once is a setting; what is not here is as for live sessions. */
  wyoming: {
    connections: 64,
    /** The line with which a message begins. */
    lineBytes: 64 * 1024,
    /** The data after it, as lists of names to expect. */
    dataBytes: 256 * 1024,
    /** The commas and opening brackets of either. A Home Assistant with thousands of names has room. */
    values: 8192,
    /** The audio of a message. It is heard as it comes and never held as a whole. */
    payloadBytes: 16 * 1024 * 1024,
    /** The text of one speech, which the speech upstream gets as a whole. */
    speechCharacters: 16_384,
    /** A client that has begun a message or a transcription is given up when it sends nothing for this long. */
    stallMs: 30_000,
    /** The longest time from the first byte of a transcription, or of a message outside of one, to its last. */
    unfinishedMs: 600_000,
  },
  /** Texts that Whisper may follow side by side. The memory of a lane grows with them. */
  whisper: { maxBeams: 8 },
  /** Bodies of speech and chat calls. They are received by the limits of uploads. */
  proxied: {
    /** A body up to this size stays in memory; a larger one takes a place among the uploads, and goes to a file. */
    memoryBytes: 1024 * 1024,
    /** The bodies that may be in memory at once. */
    inMemory: 64,
  },
  /** How clients read their answers. */
  answer: {
    /** An answer is ended when its client has read nothing of it for this long. */
    stallMs: 30_000,
    /** A client that is slower than this rate uses up `stallMs` little by little. */
    leastBytesPerSec: 1024,
  },
  /** What is read of an upstream's error, so that it can be completed or quoted, and the time that this may take. */
  upstream: {
    errorBytes: 256 * 1024,
    errorMs: 5000,
  },
  /** The names from the lists of the upstreams that `/metrics` may have as labels; further models are `other`. */
  metrics: { maxUpstreamModels: 100 },
  /** The access log and the log of the process. */
  log: {
    /** What a client chooses, such as its user agent, is cut to this many characters in a line of the access log. */
    maxFieldCharacters: 512,
    /** A line of the process's log is cut to this many characters. */
    maxLineCharacters: 16_384,
  },
  /** What a client may still send after it was answered; the gateway reads it and throws it away. */
  linger: { idleMs: 5000, totalMs: 120_000 },
  /** The records of crashes: how many are kept, the log lines of each, and the characters of a line and of a stack. */
  crashes: { kept: 50, lines: 50, lineLength: 500, messageLength: 1000 },
  /**
   * A checkpoint of torch that is imported. The known ones have fewer than a thousand entries and pickles of 130 KB.
   */
  checkpoint: {
    maxEntries: 4096,
    maxPickleBytes: 1024 * 1024,
    /** A model in the format of ONNX, which is read as a whole. The known one has 8.7 MB. */
    maxOnnxBytes: 64 * 1024 * 1024,
  },
};

export type Budgets = typeof BUDGETS;

/** Other limits for some of the budgets, as tests need them. */
export type OtherBudgets = { [Stage in keyof Budgets]?: Partial<Budgets[Stage]> };

/** The budgets with the limits of `others` in place of their own. */
export function withBudgets(others: OtherBudgets = {}): Budgets {
  const stages = Object.entries(BUDGETS).map(([stage, limits]) => [
    stage,
    { ...limits, ...others[stage as keyof Budgets] },
  ]);
  return Object.fromEntries(stages) as Budgets;
}

/** A number of bytes that several users take from and give back to. */
export type ByteBudget = ReturnType<typeof byteBudget>;

/** @param maxBytes the most bytes that can be taken at a time */
export function byteBudget(maxBytes: number) {
  let taken = 0;
  return {
    /** Takes the bytes. When fewer are left, it takes none and returns false. */
    take(bytes: number): boolean {
      if (taken + bytes > maxBytes) return false;
      taken += bytes;
      return true;
    },
    giveBack(bytes: number): void {
      taken -= bytes;
    },
  };
}
