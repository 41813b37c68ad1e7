-- ? transaction, ? resource, ? token, ? issuer, ? fingerprint of the holder, ? seq or null
INSERT INTO fenced_audit (tx, db_user, resource, token, issuer, holder, seq)
VALUES (?, USER(), ?, ?, ?, ?, ?)
