-- $1 transaction, $2 resource, $3 token, $4 issuer, $5 fingerprint of the holder, $6 seq or null
INSERT INTO main.fenced_audit (tx, resource, token, issuer, holder, seq)
VALUES ($1, $2, $3, $4, $5, $6)
