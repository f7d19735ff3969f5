"""The application-flow manager of routing-keys-2017, III: who has which key, where, until when."""
